#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace hidane::sim {

/// A model on a number of GPUs: what the step model is computed from.
/// Source of each constant: docs/simulator.md, "The step model".
struct GpuSetup {
  std::string_view name;      ///< `8b-bf16-h100`, ...
  double parameters = 7.5e9;  ///< without the input embedding
  uint32_t layers = 32;
  uint32_t width = 4'096;      ///< of the model
  double weight_bytes = 15e9;  ///< read by a decode step
  double kv_bytes_per_token = 131'072;
  uint64_t kv_capacity_tokens = 400'000;

  uint32_t gpus = 1;       ///< tensor-parallel
  double flops = 0.55e15;  ///< of a GPU, matrix products
  double attention_flops = 0.62e15;
  double bytes_per_s = 3.35e12;  ///< of a GPU, memory
  double allreduce_bytes_per_s = 337e9;

  double prefill_overhead_s = 0.015;                            ///< of a step that prefills
  double decode_overhead_s = 130e-6;                            ///< of a step that decodes
  double decode_layer_s = 32e-6;                                ///< of each layer of it
  double decode_sequence_s = 30e-6;                             ///< of each sequence in it
  double decode_weight_factor = 1.36, decode_kv_factor = 1.13;  ///< of the time to read them once
};

/// The setups that ship: 8B and 70B on H100 and H200.
std::span<const GpuSetup> GpuSetups();
/// By name, or by its first parts: `8b-bf16-h100`; `70b-fp8-h100` is the first of x4 and x8; `8b`
/// the first of all. kInvalidArgument (param `gpu`), naming those there are.
Result<GpuSetup> FindGpuSetup(std::string_view name);

/// To the nearest nanosecond.
Duration ToDuration(double seconds);

/// What one engine step computes.
struct StepShape {
  struct Chunk {
    uint32_t new_tokens = 0;
    uint32_t cached_tokens = 0;  ///< computed before, attended to
  };
  std::span<const Chunk> prefill;
  uint32_t decode_seqs = 0;
  uint64_t decode_kv_tokens = 0;  ///< of all decoding sequences together
};

/// How long steps take on a setup, from a few coefficients. Every result is a sum of products, so
/// it is the same on every machine. No call allocates.
class StepModel {
 public:
  explicit StepModel(const GpuSetup& gpu);

  /// Seconds to compute the tokens [begin, end) of a prompt whose tokens before are in the KV
  /// cache, without what a step costs once; 0 when begin >= end.
  double TokenSeconds(uint32_t begin, uint32_t end) const;
  /// Seconds of a step's prefill share, 0 without chunks: a shared part once, then per chunk.
  double PrefillSeconds(std::span<const StepShape::Chunk> chunks) const;
  /// Seconds of its decode share, 0 without decoding sequences.
  double DecodeSeconds(uint32_t seqs, uint64_t kv_tokens) const;
  /// A mixed step takes the sum of both.
  double Seconds(const StepShape& shape) const;

 private:
  double prefill_, token_, token_pair_;  // seconds: of a step, of a token, of attending to one
  double decode_, decode_seq_, decode_kv_token_;
};

}  // namespace hidane::sim
