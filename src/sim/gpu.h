#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace hidane::sim {

/// A model on a number of GPUs: the constants of the step model.
/// Source: `docs/simulator.md`, which cites each constant.
struct GpuSetup {
  std::string_view name;      ///< `8b-bf16-h100`, ...
  double parameters = 7.5e9;  ///< without embeddings
  uint32_t layers = 32;
  uint32_t width = 4096;  ///< of the model
  double weight_bytes = 15e9;
  double kv_bytes_per_token = 131'072;
  uint32_t gpus = 1;       ///< tensor-parallel
  double flops = 0.55e15;  ///< a GPU, GEMM
  double attention_flops = 0.62e15;
  double bytes_per_s = 3.35e12;  ///< a GPU, memory
  double allreduce_bytes_per_s = 337e9;
  double prefill_overhead_s = 0.015;
  double decode_kv_factor = 1.13;
  uint64_t kv_capacity_tokens = 400'000;
};

/// The setups that ship: 8B and 70B on H100 and H200.
std::span<const GpuSetup> GpuSetups();
/// kInvalidArgument (param `gpu`), naming those there are.
Result<GpuSetup> FindGpuSetup(std::string_view name);

/// What one engine step computes.
struct StepShape {
  struct Chunk {
    uint32_t new_tokens = 0;     ///< n
    uint32_t cached_tokens = 0;  ///< p: computed before, attended to
  };
  std::span<const Chunk> prefill;
  uint32_t decode_seqs = 0;
  uint64_t decode_kv_tokens = 0;  ///< of all decoding sequences together
};

/// Seconds of the step's prefill share, 0 without chunks: a shared part once, then per chunk.
double PrefillSeconds(const GpuSetup& gpu, std::span<const StepShape::Chunk> chunks);
/// Seconds of its decode share, 0 without decoding sequences.
double DecodeSeconds(const GpuSetup& gpu, uint32_t seqs, uint64_t kv_tokens);
/// A mixed step takes the sum of both, in whole nanoseconds.
Duration StepTime(const GpuSetup& gpu, const StepShape& shape);

}  // namespace hidane::sim
