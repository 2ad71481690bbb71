#pragma once
#include "vtoken/policy.h"

namespace hidane::vtoken {

/// Compresses a prompt once, by what its last rows look at.
///
///   score = mean over 5 neighbors of (sum over the prompt's last 32 rows of the token's weight);
///   the window itself stays
///
/// Source: arXiv 2404.14469, FasterDecoding/SnapKV (window 32, kernel 5, average pooling).
/// Deviations: one set per KV head, by the mean over its query heads (as NVIDIA/kvpress does).
/// Decoded tokens are never evicted: only the prompt is compressed.
/// Short facts of many tokens suffer (needles in docs/vtoken.md), perhaps since the question looks
/// at where a number begins and a mean over 5 reaches two tokens further. Don't use it on a prompt
/// part that other requests share: it keeps what *this* question needs.
class SnapKvPolicy final : public Policy {
 public:
  static constexpr uint32_t kWindow = 32, kKernel = 5;
  std::string_view name() const override { return "snapkv"; }
  PolicyTraits traits() const override;
  void Score(const TokenView& view, std::span<float> score) override;
};

}  // namespace hidane::vtoken
