#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace hidane::load {

/// What an agent sends unchanged with every request: its tools and its system message.
struct StaticPrefix {
  std::string tools_json;  ///< a JSON array of OpenAI function tools; empty = no tools
  std::string system;      ///< plain text

  size_t bytes() const { return tools_json.size() + system.size(); }
};

/// Makes a plausible agent: about four fifths of `bytes` are function schemas of one trade
/// (finance, compliance, operations, ...), the rest is a system message of rules. Differs from its
/// first words on for different seeds; the same for the same seed and size on every machine.
/// `bytes` is met to within one word; under about 600 there are no tools. REQUIRES: bytes > 0.
StaticPrefix MakeStaticPrefix(uint64_t seed, size_t bytes);

/// `words` English words drawn by `seed`, for a user's own text. Mostly one token each.
std::string MakeWords(uint64_t seed, size_t words);

}  // namespace hidane::load
