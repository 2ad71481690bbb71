#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "model/model.h"
#include "text/text.h"

/// Stand-ins for a real model, for the tests of this room and of those above it.
namespace hidane::engine {

struct FakeModelOptions {
  uint32_t vocab_size = 64, context_length = 4096;
  uint32_t kv_blocks = 256, block_size = 16;
  std::function<void(const model::StepBatch&)> on_forward = {};  ///< on the engine thread
};

/// A model whose logits are a hash of the whole context, read back through the block table: each
/// slot remembers the token and the position written there, so a misplaced slot, a wrongly shared
/// block or a skipped token changes every token from there on.
class FakeModel final : public model::Model {
 public:
  explicit FakeModel(FakeModelOptions options)
      : options_(std::move(options)), slots_(options_.kv_blocks * options_.block_size) {
    info_.name = "fake";
    info_.architecture = "fake";
    info_.vocab_size = options_.vocab_size;
    info_.context_length = options_.context_length;
    layout_.layers = layout_.kv_heads = layout_.head_dim = 1;
    layout_.block_size = options_.block_size;
  }

  const model::ModelInfo& info() const override { return info_; }
  const model::KvLayout& kv_layout() const override { return layout_; }
  uint32_t kv_blocks() const override { return options_.kv_blocks; }

  void Forward(const model::StepBatch& batch, std::span<float> logits) override {
    if (options_.on_forward) options_.on_forward(batch);
    const TokenId* token = batch.tokens.data();
    for (const model::SeqSlice& seq : batch.seqs) {
      for (uint32_t i = 0; i < seq.n_tokens; ++i) {
        Slot(seq, seq.active_length + i) = Payload(*token++, seq.first_position + i);
      }
      if (!seq.want_logits) continue;
      uint64_t h = 0;
      for (uint32_t i = 0; i < seq.active_length + seq.n_tokens; ++i) h = Mix64(h ^ Slot(seq, i));
      Logits(h, logits.first(options_.vocab_size));
      logits = logits.subspan(options_.vocab_size);
    }
  }

  /// The logits after `context`, computed without any memory: what Forward must give.
  static std::vector<float> LogitsAfter(std::span<const TokenId> context, uint32_t vocab_size) {
    uint64_t h = 0;
    for (uint32_t i = 0; i < context.size(); ++i) h = Mix64(h ^ Payload(context[i], i));
    std::vector<float> logits(vocab_size);
    Logits(h, logits);
    return logits;
  }

 private:
  static uint64_t Payload(TokenId token, uint32_t position) {
    return Mix64(uint64_t{position} << 32 | static_cast<uint32_t>(token));
  }
  static void Logits(uint64_t h, std::span<float> row) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(Mix64(h + i) % 1000) / 200;  // ties happen
    }
  }
  uint64_t& Slot(const model::SeqSlice& seq, uint32_t i) {
    const uint32_t b = layout_.block_size;
    return slots_.at(seq.block_table[i / b].value() * b + i % b);
  }

  FakeModelOptions options_;
  model::ModelInfo info_{};
  model::KvLayout layout_;
  std::vector<uint64_t> slots_;
};

/// A vocabulary of numbers: token 12 reads " 12", text is read back the same way; token 0 ends a
/// generation.
class FakeText final : public text::TextModel {
 public:
  explicit FakeText(uint32_t vocab_size) {
    for (uint32_t id = 0; id < vocab_size; ++id) bytes_.push_back(" " + std::to_string(id));
    bytes_[0].clear();
  }

  Result<std::vector<TokenId>> Encode(std::string_view text, bool) const override {
    std::vector<TokenId> tokens;
    for (const char c : text) {
      if (c == ' ') {
        tokens.push_back(0);
      } else if (c >= '0' && c <= '9' && !tokens.empty()) {
        tokens.back() = (tokens.back() * 10 + (c - '0')) % static_cast<TokenId>(vocab_size());
      } else {
        return Fail(Code::kInvalidArgument, "not a list of numbers");
      }
    }
    return tokens;
  }
  std::string_view TokenBytes(TokenId id) const override { return bytes_[static_cast<size_t>(id)]; }
  bool IsEndOfGeneration(TokenId id) const override { return id == 0; }
  uint32_t vocab_size() const override { return static_cast<uint32_t>(bytes_.size()); }
  TokenId bos() const override { return -1; }
  Result<std::vector<TokenId>> EncodeChat(std::string_view messages, std::string_view,
                                          bool) const override {
    std::vector<TokenId> tokens;
    for (const char c : messages) tokens.push_back(static_cast<uint8_t>(c) % vocab_size());
    return tokens;
  }
  Result<std::string> RenderChat(std::string_view messages, std::string_view, bool) const override {
    return std::string(messages);
  }

 private:
  std::vector<std::string> bytes_;
};

}  // namespace hidane::engine
