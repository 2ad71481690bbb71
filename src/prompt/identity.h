#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hidane::prompt {

/// What a prompt is to the router: a chain of hashes over its canonical stream, with the byte
/// extent of each block. Two prompts agree on chain[i] exactly when their first i + 1 blocks
/// agree (up to 64-bit collisions, which cost a wrong guess and never a wrong answer).
///
/// Each part of the prompt (tools, every message) starts a block of its own, so the places where
/// prompts branch are block ends:
///
///     root | tools ....|  system ..|  user ..|  assistant |  user
///               tools_end ^    k1 end ^   k2 end ^             ^ size()
///
/// A simulator fills chain and ends from (hash, tokens) pairs and sets `tokens` to ends.back().
struct Identity {
  std::string model;                   ///< as the client spelled it
  uint64_t root = 0;                   ///< chain value before block 0: namespace and model
  std::vector<uint64_t> chain;         ///< [n_blocks] hash of everything up to and with block i
  std::vector<uint32_t> ends;          ///< [n_blocks] bytes of the stream up to the end of block i
  std::vector<uint32_t> message_ends;  ///< blocks up to the end of each message (or input item)
  uint32_t tools_end = 0;              ///< blocks up to the end of the tools, 0 without
  uint32_t k1_end = 0;  ///< blocks up to the end of tools + system: the tenant's static prefix
  uint32_t k2_end = 0;  ///< blocks up to the end of the first user message: the conversation
  uint32_t tokens = 0;  ///< exact count where the body gives one (token ids), else 0

  size_t size() const { return chain.size(); }
  void Clear();  ///< empty again; buffers are kept
  uint64_t HashAt(size_t blocks) const { return blocks == 0 ? root : chain[blocks - 1]; }
  uint32_t BytesAt(size_t blocks) const { return blocks == 0 ? 0 : ends[blocks - 1]; }
  uint32_t bytes() const { return BytesAt(size()); }
  Identity StaticPart() const;  ///< a prompt that ends with K1
  uint64_t k1() const { return HashAt(k1_end); }
  uint64_t k2() const { return HashAt(k2_end); }
};

}  // namespace hidane::prompt
