#pragma once
#include <cstdint>

namespace hidane::prompt {

/// How many tokens a byte of canonical prompt is, for one model: no tokenizer runs on the path,
/// so the ratio is learned from the usage that engines report. A value; a few flops per call.
class TokenRatio {
 public:
  /// Tokens of `bytes`, at least 1 where bytes > 0.
  uint32_t Tokens(uint64_t bytes) const;

  /// An engine counted `tokens` for a prompt of `bytes`. Weighted by size, with a memory of
  /// about the last million bytes. Counts outside [1/64, 1] tokens a byte are ignored: a
  /// broken peer must not bend every estimate.
  void Observe(uint64_t bytes, uint64_t tokens);

  double tokens_per_byte() const { return tokens_ / bytes_; }

 private:
  // Before any answer: four bytes a token, with the weight of one small prompt.
  double bytes_ = 1024;
  double tokens_ = 256;
};

}  // namespace hidane::prompt
