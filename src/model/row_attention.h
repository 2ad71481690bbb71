#pragma once
#include <cstddef>
#include <cstdint>

#include "model/tile.h"

namespace hidane::model {

/// Slots of one call at most.
inline constexpr uint32_t kRowAttentionSlots = 512;
/// Entries past `slots` in the pointer arrays that must be readable rows (any of them).
inline constexpr uint32_t kRowAttentionPad = 16;

/// One row's attention over a run of slots, for the query heads that share a kv head: dot products
/// straight from the rows of K and V where they lie. For decode, where gathering and transposing a
/// tile would cost more than its arithmetic.
///
///     max[c] = max over s of q[c].k[s]        sum[c] = sum over s of p(c, s)
///     sums[d][c] = sum over s of p(c, s) v[s][d]      p(c, s) = 2^(q[c].k[s] - max[c])
///
/// q: [columns][dim] in units of log2; k, v: [slots + pad] pointers to rows of dim. p is rounded to
/// bf16 for the products, not for the sum.
struct RowAttentionArgs {
  const Bf16* q;
  uint32_t columns, dim;  ///< dim % 32 == 0
  const Bf16* const* k;
  const Bf16* const* v;
  uint32_t slots;    ///< 1..kRowAttentionSlots
  float *max, *sum;  ///< [columns]
  float* sums;       ///< [dim], rows `sums_stride` apart
  size_t sums_stride;
};

/// REQUIRES: Isa::kAvx512Bf16. No allocation. Cost: reads K and V once for up to four columns.
void RowAttentionBf16(const RowAttentionArgs& args);

}  // namespace hidane::model
