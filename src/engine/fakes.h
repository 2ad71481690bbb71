#pragma once
#include <cstdint>
#include <cstring>
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
  uint32_t layers = 1, kv_heads = 1, heads = 1;
  std::function<void(const model::StepBatch&)> on_forward = {};  ///< on the engine thread
};

/// A model whose logits are a hash of the whole context, read back through the block table: each
/// slot remembers, for each kv head of each layer, the token and the position written there, so a
/// misplaced row, a wrongly shared block or a skipped token changes every token from there on.
/// Its attention is made of hashes too: equal contents, equal signals, in any chunks and blocks.
class FakeModel final : public model::Model {
 public:
  explicit FakeModel(FakeModelOptions options)
      : options_(std::move(options)),
        slots_(size_t{options_.kv_blocks} * options_.block_size * Units()) {
    info_.name = "fake";
    info_.architecture = "fake";
    info_.vocab_size = options_.vocab_size;
    info_.context_length = options_.context_length;
    layout_.layers = info_.layers = options_.layers;
    layout_.kv_heads = info_.kv_heads = options_.kv_heads;
    info_.heads = options_.heads;
    layout_.head_dim = info_.head_dim = sizeof(uint64_t) / 4;
    layout_.element_bytes = 4;
    layout_.block_size = options_.block_size;
  }

  const model::ModelInfo& info() const override { return info_; }
  const model::KvLayout& kv_layout() const override { return layout_; }
  uint32_t kv_blocks() const override { return options_.kv_blocks; }

  void Forward(const model::StepBatch& batch, std::span<float> logits) override {
    if (options_.on_forward) options_.on_forward(batch);
    const TokenId* token = batch.tokens.data();
    for (const model::SeqSlice& seq : batch.seqs) {
      for (uint32_t i = 0; i < seq.n_tokens; ++i, ++token) {
        for (uint32_t unit = 0; unit < Units(); ++unit) {
          const uint32_t slot =
              seq.write_slots.empty() ? seq.active_length + i : seq.write_slots[unit];
          Slot(seq.block_table, unit, slot) = Payload(*token, seq.first_position + i);
        }
        if (seq.signals != nullptr) Signal(seq, i);
      }
      if (!seq.want_logits) continue;
      uint64_t h = 0;
      for (uint32_t unit = 0; unit < Units(); ++unit) {
        for (uint32_t i = 0; i < seq.active_length + seq.n_tokens; ++i) {
          if (IsDead(seq, unit, i)) continue;
          h = Mix64(h ^ Slot(seq.block_table, unit, i));
        }
      }
      Logits(h, logits.first(options_.vocab_size));
      logits = logits.subspan(options_.vocab_size);
    }
  }

  void MoveRows(model::KvUnit unit, std::span<const model::RowMove> moves) override {
    for (const model::RowMove& move : moves) {
      for (uint32_t u = 0; u < Units(); ++u) {
        const bool moved = unit == model::KvUnit::kSequence ||
                           (unit == model::KvUnit::kLayer && u / options_.kv_heads == move.unit) ||
                           (unit == model::KvUnit::kKvHead && u == move.unit);
        if (moved) slots_.at(move.to * Units() + u) = slots_.at(move.from * Units() + u);
      }
    }
  }

  void SaveSlots(std::span<const BlockId> block_table, uint32_t slots,
                 std::span<std::byte> bytes) const override {
    ForEachSaved(block_table, slots, [&](size_t at, size_t slot) {
      std::memcpy(bytes.data() + at, &slots_.at(slot), sizeof(uint64_t));
    });
  }
  void LoadSlots(std::span<const BlockId> block_table, uint32_t slots,
                 std::span<const std::byte> bytes) override {
    ForEachSaved(block_table, slots, [&](size_t at, size_t slot) {
      std::memcpy(&slots_.at(slot), bytes.data() + at, sizeof(uint64_t));
    });
  }

  void ReadKeys(uint32_t layer, uint32_t kv_head, std::span<const BlockId> block_table,
                uint32_t first, uint32_t n, std::span<float> out) const override {
    for (uint32_t i = 0; i < n; ++i) {
      const size_t slot = SlotIndex(block_table, layer * options_.kv_heads + kv_head, first + i);
      out[2 * i] = Unit(slots_.at(slot));
      out[2 * i + 1] = Unit(Mix64(slots_.at(slot)));
    }
  }

  /// The logits after `context` without eviction and with one kv head, computed without any memory:
  /// what Forward must give.
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
  static float Unit(uint64_t h) { return static_cast<float>(h % 1021 + 1) / 1024; }
  bool IsDead(const model::SeqSlice& seq, uint32_t unit, uint32_t slot) const {
    const size_t words = seq.dead.size() / Units();
    return slot / 64 < words && seq.dead[unit * words + slot / 64] >> slot % 64 & 1;
  }
  uint32_t Units() const { return options_.layers * options_.kv_heads; }
  size_t SlotIndex(std::span<const BlockId> table, uint32_t unit, uint32_t i) const {
    const uint32_t b = options_.block_size;
    return (size_t{table[i / b].value()} * b + i % b) * Units() + unit;
  }
  uint64_t& Slot(std::span<const BlockId> table, uint32_t unit, uint32_t i) {
    return slots_.at(SlotIndex(table, unit, i));
  }
  template <class Fn>
  void ForEachSaved(std::span<const BlockId> table, uint32_t slots, Fn fn) const {
    for (uint32_t unit = 0; unit < Units(); ++unit) {
      for (uint32_t i = 0; i < slots; ++i) {
        fn((size_t{unit} * slots + i) * layout_.token_bytes() / Units(), SlotIndex(table, unit, i));
      }
    }
  }

  /// What new row `row` says of the slots that it reads, in all heads.
  void Signal(const model::SeqSlice& seq, uint32_t row) {
    const model::SlotSignals& out = *seq.signals;
    const uint32_t reads = seq.active_length + row + 1, group = options_.heads / options_.kv_heads;
    for (uint32_t head = 0; head < options_.layers * options_.heads; ++head) {
      for (uint32_t slot = 0; slot < reads; ++slot) {
        const uint64_t key = Slot(seq.block_table, head / group, slot);
        const float p = Unit(Mix64(key ^ (seq.first_position + row + head))) / 64;
        const size_t at = size_t{head} * out.stride + slot;
        const auto add = [&](const model::RowSums& to, float x) {
          if (!to.sums.empty() && row >= to.from) to.sums[at] += x;
        };
        add(out.mass, p);
        add(out.window, p);
        add(out.below, p < out.below_factor / static_cast<float>(reads) ? 1.0f : 0.0f);
        if (!out.last.empty() && row + 1 == seq.n_tokens) out.last[at] = p;
      }
    }
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
