#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "model/cpu.h"
#include "model/gguf.h"
#include "model/kernels.h"
#include "model/panels.h"

/// The fast operations one by one, on one thread, at the shapes of SmolLM2-135M. HIDANE_CPU lowers
/// the instruction set.
namespace hidane::model {
namespace {

std::vector<std::byte> Weights(TensorType type, size_t n) {
  const BlockTraits traits = TraitsOf(type);
  std::vector<std::byte> bytes(n / traits.elements * traits.bytes);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i % traits.bytes < 4 ? 0x11 : i * 37);
  return bytes;
}

bool WantsBf16(benchmark::State& state, int64_t argument) {
  if (argument != 0 && !CpuMultipliesBf16()) state.SkipWithError("no bf16 on this CPU");
  return argument != 0 && CpuMultipliesBf16();
}

/// y = xW' for [m, k] x [k, n]: {bf16, type, m, k, n}. Rates: arithmetic, and the file's bytes.
void BM_Linear(benchmark::State& state) {
  const auto kernels = MakeFastKernels(1, WantsBf16(state, state.range(0)));
  const auto type = static_cast<TensorType>(state.range(1));
  const auto m = static_cast<uint32_t>(state.range(2)), k = static_cast<uint32_t>(state.range(3)),
             n = static_cast<uint32_t>(state.range(4));
  const auto data = Weights(type, size_t{n} * k);
  // Several matrices in turn, as layers follow each other: weights come from beyond L2.
  std::vector<std::unique_ptr<Linear>> layers;
  const WeightView view{type, data.data(), n, k};
  for (size_t bytes = 0; bytes < (8u << 20); bytes += data.size())
    layers.push_back(kernels->MakeLinear({&view, 1}));
  const std::vector<float> x(size_t{m} * k, 0.5F);
  std::vector<float> y(size_t{m} * n);
  size_t layer = 0;
  for (auto _ : state) {
    layers[layer++ % layers.size()]->Apply({x.data(), k}, m, {y.data(), n});
    benchmark::ClobberMemory();
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * m * k * n * runs, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(1e-9 * static_cast<double>(data.size()) * runs,
                                              benchmark::Counter::kIsRate);
}
void LinearShapes(benchmark::internal::Benchmark* b) {
  for (const int64_t bf16 : {1, 0})
    for (const int64_t m : {1, 2, 4, 8, 16, 32, 128, 512, 2048})
      for (const auto& [k, n] : {std::pair<int64_t, int64_t>{576, 3072}, {1536, 576}})
        b->Args({bf16, static_cast<int64_t>(TensorType::kQ4_1), m, k, n});
  b->Args({1, static_cast<int64_t>(TensorType::kQ8_0), 1, 576, 49152});
}
BENCHMARK(BM_Linear)->Apply(LinearShapes)->ArgNames({"bf16", "type", "m", "k", "n"});

/// `rows` query rows over a context of `length` slots before them: {bf16, rows, length, sequences}.
void BM_Attention(benchmark::State& state) {
  const bool bf16 = WantsBf16(state, state.range(0));
  const auto kernels = MakeFastKernels(1, bf16);
  const auto rows = static_cast<uint32_t>(state.range(1)),
             length = static_cast<uint32_t>(state.range(2)),
             n_seqs = static_cast<uint32_t>(state.range(3));
  constexpr uint32_t kHeads = 9;
  const KvLayout layout{.layers = 1,
                        .kv_heads = 3,
                        .head_dim = 64,
                        .block_size = 16,
                        .element_bytes = bf16 ? 2u : 4u};
  const uint32_t blocks = (length + rows) / layout.block_size + 1;
  std::vector<std::vector<BlockId>> tables(n_seqs);
  std::vector<AttentionSeq> seqs;
  for (uint32_t s = 0; s < n_seqs; ++s) {
    for (uint32_t i = 0; i < blocks; ++i)
      tables[s].push_back(BlockId((i * 7 % blocks) * n_seqs + s));
    seqs.push_back({s * rows, rows, length, tables[s]});
  }
  std::vector<std::byte> k(size_t{blocks} * n_seqs * layout.block_bytes()), v = k;
  constexpr size_t kWidth = size_t{kHeads} * 64;
  const std::vector<float> q(size_t{rows} * n_seqs * kWidth, 0.5F);
  std::vector<float> out(q.size());
  for (auto _ : state) {
    kernels->Attention({q.data(), kWidth}, kHeads, 0.125F, seqs, layout, {k.data(), v.data()},
                       {out.data(), kWidth});
    benchmark::ClobberMemory();
  }
  const double pairs = n_seqs * (rows * double{length} + rows * (rows + 1.0) / 2);
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] =
      benchmark::Counter(4e-9 * kWidth * pairs * runs, benchmark::Counter::kIsRate);
  state.counters["GB/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(layout.block_bytes() * blocks * n_seqs) * runs,
                         benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Attention)
    ->ArgNames({"bf16", "rows", "length", "seqs"})
    ->Args({1, 512, 0, 1})
    ->Args({1, 512, 4096, 1})
    ->Args({1, 1, 1000, 8})
    ->Args({1, 1, 4096, 1})
    ->Args({0, 512, 0, 1})
    ->Args({0, 512, 4096, 1})
    ->Args({0, 1, 1000, 8})
    ->Args({0, 1, 4096, 1});

enum class Asked : uint8_t { kNothing, kMass, kBelow, kLast };

/// One layer's attention of one sequence, and then what a policy asks of it (signal, an Asked; 0:
/// attention alone): {bf16, rows, length, signal}.
void BM_AttentionWithSignal(benchmark::State& state) {
  const bool bf16 = WantsBf16(state, state.range(0));
  const auto kernels = MakeFastKernels(1, bf16);
  const auto rows = static_cast<uint32_t>(state.range(1)),
             length = static_cast<uint32_t>(state.range(2));
  const auto asked = static_cast<Asked>(state.range(3));
  constexpr uint32_t kHeads = 9;
  const KvLayout layout{.layers = 1,
                        .kv_heads = 3,
                        .head_dim = 64,
                        .block_size = 16,
                        .element_bytes = bf16 ? 2u : 4u};
  const uint32_t blocks = (length + rows) / layout.block_size + 1;
  std::vector<BlockId> table;
  for (uint32_t i = 0; i < blocks; ++i) table.push_back(BlockId(i * 7 % blocks));
  const AttentionSeq seq{0, rows, length, table};
  std::vector<std::byte> k(blocks * layout.block_bytes()), v = k;
  constexpr size_t kWidth = size_t{kHeads} * 64;
  const std::vector<float> q(size_t{rows} * kWidth, 0.5F);
  std::vector<float> out(q.size()), lse(size_t{rows} * kHeads), sums(kHeads * (length + rows));
  SlotSignals signals;
  signals.stride = length + rows;
  if (asked == Asked::kMass) signals.mass.sums = sums;
  if (asked == Asked::kBelow) signals.below.sums = sums;
  if (asked == Asked::kLast) signals.last = sums;
  for (auto _ : state) {
    kernels->Attention({q.data(), kWidth}, kHeads, 0.125F, {&seq, 1}, layout, {k.data(), v.data()},
                       {out.data(), kWidth}, lse);
    if (asked != Asked::kNothing)
      kernels->Signals({q.data(), kWidth}, kHeads, 0.125F, seq, layout, {k.data(), v.data()}, lse,
                       signals);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_AttentionWithSignal)
    ->ArgNames({"bf16", "rows", "length", "signal"})
    ->ArgsProduct({{1, 0}, {1}, {2048}, {0, 1, 2, 3}})
    ->ArgsProduct({{1, 0}, {256}, {1792}, {0, 1, 2, 3}})
    ->Unit(benchmark::kMicrosecond);

/// The inner kernel alone, operands in the nearest cache: {m, panels, k}.
void BM_GemmBf16(benchmark::State& state) {
  if (!WantsBf16(state, 1)) return;
  const auto gemm = BestIsa() == Isa::kAmx ? GemmBf16Amx : GemmBf16Avx512;
  const auto m = static_cast<uint32_t>(state.range(0)),
             panels = static_cast<uint32_t>(state.range(1)),
             k = static_cast<uint32_t>(state.range(2));
  const std::vector<Bf16> a(size_t{m + kRowPad} * k), b(size_t{panels} * kPanel * k);
  const size_t ldc = size_t{panels} * kPanel;
  std::vector<float> c(m * ldc);
  const TileScope tiles(gemm);
  for (auto _ : state) {
    gemm({a.data(), k, 1, b.data(), m, panels, k, c.data(), ldc, false});
    benchmark::ClobberMemory();
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * m * k * static_cast<double>(ldc * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_GemmBf16)
    ->ArgNames({"m", "panels", "k"})
    ->Args({16, 4, 256})
    ->Args({8, 4, 256})
    ->Args({64, 1, 64})
    ->Args({128, 2, 544})
    ->Args({512, 2, 544})
    ->Args({512, 2, 96})
    ->Args({512, 2, 160})
    ->Args({512, 2, 224})
    ->Args({512, 2, 288})
    ->Args({512, 2, 352})
    ->Args({32, 2, 160})
    ->Args({32, 2, 288})
    ->Args({32, 2, 544});

/// Decoding packed blocks into a GEMM operand: {type}.
void BM_DecodeBf16(benchmark::State& state) {
  if (!WantsBf16(state, 1)) return;
  const auto type = static_cast<PanelType>(state.range(0));
  constexpr uint32_t kBlocks = 32;
  const std::vector<std::byte> in(kBlocks * BlockBytes(type));
  std::vector<Bf16> out(size_t{kBlocks} * kBlockInputs * kPanel);
  for (auto _ : state) {
    DecodeBf16(type, in.data(), kBlocks, out.data());
    benchmark::ClobberMemory();
  }
  state.counters["Gweights/s"] = benchmark::Counter(
      1e-9 * static_cast<double>(out.size() * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_DecodeBf16)->Arg(int(PanelType::kQ4_1))->Arg(int(PanelType::kQ8_0));

/// Row operations on 512 rows of the model's width.
void BM_RmsNorm(benchmark::State& state) {
  const auto kernels = MakeFastKernels(1, false);
  constexpr uint32_t kRows = 512, kDim = 576;
  const std::vector<float> x(size_t{kRows} * kDim, 0.5F), gain(kDim, 1.0F);
  std::vector<float> y(x.size());
  for (auto _ : state) kernels->RmsNorm({x.data(), kDim}, kRows, gain, 1e-5F, {y.data(), kDim});
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * 2 * x.size() * sizeof(float)));
}
BENCHMARK(BM_RmsNorm);

void BM_SiluMul(benchmark::State& state) {
  const auto kernels = MakeFastKernels(1, false);
  constexpr uint32_t kRows = 512, kDim = 1536;
  const std::vector<float> x(size_t{kRows} * 2 * kDim, 0.5F);
  std::vector<float> y(size_t{kRows} * kDim);
  for (auto _ : state) kernels->SiluMul({x.data(), 2 * kDim}, kRows, kDim, {y.data(), kDim});
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * 3 * y.size() * sizeof(float)));
}
BENCHMARK(BM_SiluMul);

}  // namespace
}  // namespace hidane::model

BENCHMARK_MAIN();
