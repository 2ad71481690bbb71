#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace hidane::model {

/// One sequence fed by hand, for tests and benches: owns a block table, no scheduler. Its blocks
/// come in swapped pairs from `first_block` on, so that neighbours in the sequence are no
/// neighbours in memory.
class Sequence {
 public:
  explicit Sequence(Model& model, uint32_t first_block = 0, uint32_t first_position = 0)
      : model_(model), next_block_(first_block), first_position_(first_position) {}

  /// Appends `tokens` in one step; their last token's logits, if wanted.
  std::vector<float> Feed(std::span<const TokenId> tokens, bool want_logits = true) {
    const uint32_t block_size = model_.kv_layout().block_size;
    const auto n = static_cast<uint32_t>(tokens.size());
    while (blocks_.size() * block_size < size_t{length_} + n) {
      blocks_.push_back(BlockId(next_block_ ^ 1));  // 1, 0, 3, 2, ...
      ++next_block_;
    }
    const SeqSlice slice{n, first_position_ + length_, length_, blocks_, want_logits};
    std::vector<float> logits(want_logits ? model_.info().vocab_size : 0);
    model_.Forward({tokens, {&slice, 1}}, logits);
    length_ += n;
    return logits;
  }

  uint32_t length() const { return length_; }

 private:
  Model& model_;
  uint32_t next_block_, first_position_, length_ = 0;
  std::vector<BlockId> blocks_;
};

/// The most probable token; the lowest id of equals.
inline TokenId Argmax(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace hidane::model
