#pragma once
#include <memory>
#include <span>

#include "model/kernels.h"
#include "model/parallel.h"
#include "model/scratch.h"
#include "model/tile.h"
#include "model/weight_store.h"

namespace hidane::model {

/// What the fast operations share: threads, the inner kernel for this CPU, memory to work in.
/// T is the operand type, float or Bf16.
template <class T>
struct FastContext {
  FastContext(uint32_t threads, GemmFn<T> gemm_fn, QuantGemmFn<T> quant_gemm_fn)
      : pool(threads), gemm(gemm_fn), quant_gemm(quant_gemm_fn), per_thread(threads) {}

  Pool pool;
  GemmFn<T> gemm;
  QuantGemmFn<T> quant_gemm;        ///< for few rows
  Scratch activations;              ///< GEMM's left operand in bf16
  Scratch block_sums;               ///< of the left operand
  Scratch partials;                 ///< of attention split over the context
  std::vector<Scratch> per_thread;  ///< one task's
};

/// Packed weights, decoded group by group into a GEMM operand that stays in the first-level cache.
template <class T>
std::unique_ptr<Linear> MakeFastLinear(FastContext<T>& context, WeightStore& store,
                                       std::span<const WeightView> parts);

}  // namespace hidane::model
