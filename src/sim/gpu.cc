#include "sim/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace hidane::sim {
namespace {

constexpr double kH200Bytes = 4.8e12, kFp8Flops = 1.0e15;

constexpr GpuSetup k70b{.name = "",
                        .parameters = 68.5e9,
                        .layers = 80,
                        .width = 8'192,
                        .weight_bytes = 70.6e9,
                        .kv_bytes_per_token = 327'680,
                        .kv_capacity_tokens = 690'000,
                        .gpus = 4,
                        .flops = kFp8Flops,
                        .prefill_overhead_s = 0.030};

constexpr GpuSetup Fp8H200Of8b() {
  GpuSetup s{.name = "8b-fp8-h200"};
  s.weight_bytes = 8.0e9;
  s.kv_capacity_tokens = 945'029;
  s.flops = kFp8Flops;
  s.bytes_per_s = kH200Bytes;
  s.prefill_overhead_s = 0.0165;
  s.decode_overhead_s = 1.21e-3;
  s.decode_sequence_s = 27.4e-6;
  return s;
}

constexpr GpuSetup Of70b(std::string_view name, uint32_t gpus, uint64_t kv_tokens) {
  GpuSetup s = k70b;
  s.name = name;
  s.gpus = gpus;
  s.kv_capacity_tokens = kv_tokens;
  return s;
}

constexpr std::array<GpuSetup, 6> MakeSetups() {
  GpuSetup h200 = Of70b("70b-fp8-h200x4", 4, 1'400'000);
  h200.bytes_per_s = kH200Bytes;
  GpuSetup bf16 = Of70b("70b-bf16-h100x4", 4, 470'000);
  bf16.weight_bytes = 139e9;
  bf16.flops = GpuSetup{}.flops;
  return {GpuSetup{.name = "8b-bf16-h100"},      Fp8H200Of8b(), Of70b("70b-fp8-h100x4", 4, 690'000),
          Of70b("70b-fp8-h100x8", 8, 1'600'000), h200,          bf16};
}

constexpr std::array<GpuSetup, 6> kSetups = MakeSetups();

// True if `name` is `full`, or ends where a part of it ends: a dash, or the number of GPUs.
bool Names(std::string_view name, std::string_view full) {
  if (name.empty() || !full.starts_with(name)) return false;
  return name.size() == full.size() || full[name.size()] == '-' || full[name.size()] == 'x';
}

}  // namespace

std::span<const GpuSetup> GpuSetups() {
  return kSetups;
}

Result<GpuSetup> FindGpuSetup(std::string_view name) {
  const auto at = std::ranges::find_if(kSetups, [&](const auto& s) { return Names(name, s.name); });
  if (at != kSetups.end()) return *at;
  std::string all;
  for (const GpuSetup& s : kSetups) {
    if (!all.empty()) all += ", ";
    all += s.name;
  }
  return Fail(Code::kInvalidArgument, fmt::format("no GPU setup `{}`; there are {}", name, all),
              "gpu");
}

Duration ToDuration(double seconds) {
  return Duration(std::llround(seconds * 1e9));
}

StepModel::StepModel(const GpuSetup& gpu) {
  const double n = gpu.gpus, layers = gpu.layers, width = gpu.width;
  prefill_ = gpu.prefill_overhead_s;
  token_ = 2 * gpu.parameters / (n * gpu.flops);
  token_pair_ = 4 * layers * width / (n * gpu.attention_flops);
  decode_ = gpu.decode_weight_factor * gpu.weight_bytes / (n * gpu.bytes_per_s) +
            gpu.decode_layer_s * layers + gpu.decode_overhead_s;
  decode_seq_ = gpu.decode_sequence_s;
  decode_kv_token_ = gpu.decode_kv_factor * gpu.kv_bytes_per_token / (n * gpu.bytes_per_s);
  if (gpu.gpus == 1) return;
  // Two all-reduces a layer, of 16-bit activations, in a ring; a decode step's are all latency.
  constexpr double kAllreduceLatency = 8e-6;
  token_ += 2 * layers * (2 * width * 2 * (n - 1) / n) / gpu.allreduce_bytes_per_s;
  decode_ += 2 * layers * kAllreduceLatency;
}

double StepModel::TokenSeconds(uint32_t begin, uint32_t end) const {
  if (begin >= end) return 0;
  const double a = begin, b = end;
  return token_ * (b - a) + token_pair_ * ((b * b - a * a) / 2);
}

double StepModel::PrefillSeconds(std::span<const StepShape::Chunk> chunks) const {
  if (chunks.empty()) return 0;
  double sum = prefill_;
  for (const StepShape::Chunk& chunk : chunks) {
    sum += TokenSeconds(chunk.cached_tokens, chunk.cached_tokens + chunk.new_tokens);
  }
  return sum;
}

double StepModel::DecodeSeconds(uint32_t seqs, uint64_t kv_tokens) const {
  if (seqs == 0) return 0;
  return decode_ + decode_seq_ * seqs + decode_kv_token_ * static_cast<double>(kv_tokens);
}

double StepModel::Seconds(const StepShape& shape) const {
  return PrefillSeconds(shape.prefill) + DecodeSeconds(shape.decode_seqs, shape.decode_kv_tokens);
}

}  // namespace hidane::sim
