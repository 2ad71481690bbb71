#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "model/cpu.h"
#include "model/dequantize.h"
#include "model/kernels.h"
#include "model/rope_table.h"

/// Every fast operation against its scalar twin, on every instruction set that this CPU has, over
/// sizes that are no multiple of any tile, within the bounds that kernels.h states.
namespace hidane::model {
namespace {

constexpr double kF32 = 0x1p-24, kBf16 = 0x1p-8;

struct Target {
  Isa isa;
  bool bf16;
  uint32_t threads;
};
void PrintTo(const Target& t, std::ostream* out) {
  *out << IsaName(t.isa) << (t.bf16 ? "_bf16" : "_f32") << "_threads" << t.threads;
}

class FastKernels : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    SetIsaCeiling(GetParam().isa);
    if (BestIsa() != GetParam().isa) GTEST_SKIP() << "this CPU has no " << IsaName(GetParam().isa);
    fast_ = MakeFastKernels(GetParam().threads, GetParam().bf16);
    reference_ = MakeReferenceKernels(GetParam().bf16);
  }
  void TearDown() override { SetIsaCeiling(Isa::kAmx); }

  bool bf16() const { return GetParam().bf16; }
  float Random() { return 2 * static_cast<float>(rng_.Unit()) - 1; }
  std::vector<float> RandomFloats(size_t n, float scale = 1) {
    std::vector<float> values(n);
    for (float& value : values) value = scale * Random();
    return values;
  }
  std::vector<std::byte> RandomWeights(TensorType type, size_t n);

  Rng rng_{7};
  std::unique_ptr<Kernels> fast_, reference_;
};

template <class T>
void Append(std::vector<std::byte>& bytes, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

std::vector<std::byte> FastKernels::RandomWeights(TensorType type, size_t n) {
  constexpr uint16_t kScales[] = {0x1400, 0x1234, 0x0C01, 0x9400};  // about +-0.0005..0.001
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < n; i += TraitsOf(type).elements) {
    const uint16_t scale = kScales[rng_.Next() % 4], minimum = kScales[rng_.Next() % 4];
    if (type == TensorType::kF32) Append(bytes, Random());
    if (type == TensorType::kBF16) Append(bytes, FloatToBf16(Random()));
    if (type == TensorType::kF16) Append(bytes, static_cast<uint16_t>(0x3000 + rng_.Next() % 4096));
    if (type == TensorType::kQ4_1) {
      BlockQ4_1 block{scale, minimum, {}};
      for (uint8_t& q : block.q) q = static_cast<uint8_t>(rng_.Next());
      Append(bytes, block);
    }
    if (type == TensorType::kQ8_0) {
      BlockQ8_0 block{scale, {}};
      for (int8_t& q : block.q) q = static_cast<int8_t>(rng_.Next());
      Append(bytes, block);
    }
  }
  return bytes;
}

constexpr TensorType kTypes[] = {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                 TensorType::kQ4_1, TensorType::kQ8_0};

TEST_P(FastKernels, LinearIsWithinItsBound) {
  for (const TensorType type : kTypes) {
    for (const uint32_t k : {32u, 96u, 608u, 1536u}) {
      const uint32_t rows[] = {16, 100, 37};  // 37: its last panel lies beside nothing
      std::vector<std::vector<std::byte>> data;
      std::vector<WeightView> parts;
      std::vector<float> weights;
      for (const uint32_t n : rows) {
        data.push_back(RandomWeights(type, size_t{n} * k));
        parts.push_back({type, data.back().data(), n, k});
        const size_t at = weights.size();
        weights.resize(at + size_t{n} * k);
        Dequantize(type, data.back(), std::span(weights).subspan(at));
      }
      const auto fast = fast_->MakeLinear(parts), reference = reference_->MakeLinear(parts);
      const uint32_t n = fast->out();
      ASSERT_EQ(n, 153u);
      for (const uint32_t m : {1u, 3u, 15u, 16u, 17u, 40u, 67u, 290u}) {
        if (m == 290 && (k < 1536 || type != TensorType::kQ4_1)) continue;  // bands of rows
        const size_t stride = n + 5;
        const std::vector<float> x = RandomFloats(m * size_t{k});
        std::vector<float> y = RandomFloats(m * stride), wanted = y;
        const auto output = m % 2 == 0 ? Linear::Output::kAdd : Linear::Output::kStore;
        const std::vector<float> before = y;
        fast->Apply({x.data(), k}, m, {y.data(), stride}, output);
        reference->Apply({x.data(), k}, m, {wanted.data(), stride}, output);
        for (uint32_t i = 0; i < m; ++i) {
          for (uint32_t j = 0; j < stride; ++j) {
            const size_t at = i * stride + j;
            if (j >= n) {
              ASSERT_EQ(y[at], before[at]) << "wrote beside its columns";
              continue;
            }
            double magnitude = 0;
            for (uint32_t l = 0; l < k; ++l)
              magnitude += std::abs(double{weights[size_t{j} * k + l]} * x[size_t{i} * k + l]);
            const double bound =
                (2 * k * kF32 + (bf16() ? 2 * kBf16 : 0)) * (magnitude + std::abs(before[at]));
            ASSERT_NEAR(y[at], wanted[at], bound) << "type " << static_cast<int>(type) << " k " << k
                                                  << " m " << m << " at " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST_P(FastKernels, RmsNormIsWithinItsBound) {
  for (const uint32_t n : {1u, 7u, 64u, 576u, 1001u}) {
    const uint32_t t = 50;
    const auto x = RandomFloats(size_t{t} * n), gain = RandomFloats(n);
    std::vector<float> y(x.size()), wanted(x.size());
    fast_->RmsNorm({x.data(), n}, t, gain, 1e-5F, {y.data(), n});
    reference_->RmsNorm({x.data(), n}, t, gain, 1e-5F, {wanted.data(), n});
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], wanted[i], (n + 4) * kF32 * std::abs(wanted[i])) << n;
  }
}

TEST_P(FastKernels, RopeIsWithinItsBound) {
  for (const uint32_t dim : {2u, 32u, 64u, 70u}) {
    const uint32_t heads = 3, t = 40;
    const std::vector<float> table = MakeRopeTable(1000, dim, dim, 1e5F, {});
    std::vector<uint32_t> positions(t);
    for (uint32_t& position : positions) position = static_cast<uint32_t>(rng_.Next() % 1000);
    std::vector<float> x = RandomFloats(size_t{t} * heads * dim), wanted = x;
    fast_->Rope({x.data(), heads * dim}, heads, dim, positions, table);
    reference_->Rope({wanted.data(), heads * dim}, heads, dim, positions, table);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], wanted[i], 0x1p-22) << dim;
  }
}

TEST_P(FastKernels, SiluMulIsWithinItsBound) {
  for (const uint32_t n : {1u, 9u, 1536u}) {
    const uint32_t t = 17;
    const auto gate_up = RandomFloats(size_t{t} * 2 * n, 30);
    std::vector<float> y(size_t{t} * n), wanted(y.size());
    fast_->SiluMul({gate_up.data(), 2 * n}, t, n, {y.data(), n});
    reference_->SiluMul({gate_up.data(), 2 * n}, t, n, {wanted.data(), n});
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], wanted[i], (30 + 8) * 0x1p-23 * std::abs(wanted[i])) << n;
  }
}

TEST_P(FastKernels, SiluMulOfExtremesIsFinite) {
  const std::vector<float> gate_up = {-1e4F, -100, -88, 88, 100, 1e4F, 1, 1, 1, 1, 1, 1};
  std::vector<float> y(6);
  fast_->SiluMul({gate_up.data(), 12}, 1, 6, {y.data(), 6});
  EXPECT_NEAR(y[0], 0, 1e-20);
  EXPECT_NEAR(y[1], 0, 1e-20);
  EXPECT_EQ(y[4], 100);
  EXPECT_EQ(y[5], 1e4F);
}

/// Sequences with their K and V in a paged memory whose free slots hold NaN.
struct Paged {
  KvLayout layout;
  uint32_t heads;
  std::vector<std::byte> k, v;
  std::vector<std::vector<BlockId>> tables;
  std::vector<AttentionSeq> seqs;
  uint32_t rows = 0;

  Paged(const KvLayout& shape, uint32_t query_heads, std::span<const AttentionSeq> wanted)
      : layout(shape), heads(query_heads) {
    uint32_t blocks = 0;
    for (const AttentionSeq& seq : wanted) {
      const uint32_t n = (seq.active_length + seq.n_rows) / layout.block_size + 1;
      auto& table = tables.emplace_back();
      for (uint32_t i = 0; i < n; ++i) table.push_back(BlockId(blocks + (n - 1 - i)));
      blocks += n;
      seqs.push_back({rows, seq.n_rows, seq.active_length, {}});
      rows += seq.n_rows;
    }
    for (size_t i = 0; i < seqs.size(); ++i) seqs[i].block_table = tables[i];
    k.assign(blocks * layout.block_bytes(), std::byte{0xFF});  // NaN in bf16 and f32
    v = k;
  }

  uint32_t q_width() const { return heads * layout.head_dim; }
  uint32_t kv_width() const { return layout.kv_heads * layout.head_dim; }
  KvLayer layer() { return {k.data(), v.data()}; }

  /// Fills every slot before the step's own rows, and then those.
  void Fill(Kernels& kernels, FastKernels& test, const std::vector<float>& new_k,
            const std::vector<float>& new_v, std::vector<float> (*random)(FastKernels&, size_t)) {
    for (const AttentionSeq& seq : seqs) {
      if (seq.active_length == 0) continue;
      const AttentionSeq before{0, seq.active_length, 0, seq.block_table};
      const auto old_k = random(test, size_t{seq.active_length} * kv_width());
      const auto old_v = random(test, size_t{seq.active_length} * kv_width());
      kernels.StoreKv({old_k.data(), kv_width()}, {old_v.data(), kv_width()}, {&before, 1}, layout,
                      layer());
    }
    kernels.StoreKv({new_k.data(), kv_width()}, {new_v.data(), kv_width()}, seqs, layout, layer());
  }
};

class FastAttentionTest : public FastKernels {
 protected:
  static std::vector<float> Values(FastKernels& test, size_t n) {
    return static_cast<FastAttentionTest&>(test).RandomFloats(n);
  }
  KvLayout Layout(uint32_t kv_heads, uint32_t dim, uint32_t block_size) const {
    return {.layers = 1,
            .kv_heads = kv_heads,
            .head_dim = dim,
            .block_size = block_size,
            .element_bytes = bf16() ? 2u : 4u};
  }
  Paged Make(const KvLayout& layout, uint32_t heads, std::span<const AttentionSeq> seqs) {
    Paged paged(layout, heads, seqs);
    new_k_ = RandomFloats(size_t{paged.rows} * paged.kv_width());
    new_v_ = RandomFloats(size_t{paged.rows} * paged.kv_width());
    paged.Fill(*fast_, *this, new_k_, new_v_, Values);
    return paged;
  }
  std::vector<float> new_k_, new_v_;
};

TEST_P(FastAttentionTest, StoresWhatTheScalarTwinStores) {
  const AttentionSeq wanted[] = {{0, 70, 0, {}}, {0, 1, 5, {}}};
  Paged paged = Make(Layout(3, 64, 16), 9, wanted);
  Paged again = paged;
  for (size_t i = 0; i < again.seqs.size(); ++i) again.seqs[i].block_table = again.tables[i];
  reference_->StoreKv({new_k_.data(), paged.kv_width()}, {new_v_.data(), paged.kv_width()},
                      again.seqs, again.layout, again.layer());
  EXPECT_EQ(paged.k, again.k);
  EXPECT_EQ(paged.v, again.v);
}

TEST_P(FastAttentionTest, AttentionIsWithinItsBound) {
  struct Shape {
    uint32_t heads, kv_heads, dim, block_size;
  };
  const AttentionSeq wanted[] = {{0, 1, 0, {}},  {0, 1, 1100, {}}, {0, 70, 0, {}},
                                 {0, 5, 63, {}}, {0, 3, 510, {}},  {0, 130, 450, {}}};
  for (const Shape& s : {Shape{9, 3, 64, 16}, Shape{4, 4, 32, 7}, Shape{14, 2, 96, 1}}) {
    Paged paged = Make(Layout(s.kv_heads, s.dim, s.block_size), s.heads, wanted);
    const size_t width = paged.q_width(), stride = width + 3;
    const auto q = RandomFloats(paged.rows * stride, 3);
    std::vector<float> out(paged.rows * stride), expected(out.size());
    std::vector<float> lse(size_t{paged.rows} * s.heads), expected_lse(lse.size());
    const float scale = 1 / std::sqrt(static_cast<float>(s.dim));
    fast_->Attention({q.data(), stride}, s.heads, scale, paged.seqs, paged.layout, paged.layer(),
                     {out.data(), stride}, lse);
    reference_->Attention({q.data(), stride}, s.heads, scale, paged.seqs, paged.layout,
                          paged.layer(), {expected.data(), stride}, expected_lse);
    const double bound = bf16() ? 0x1p-6 : (s.dim + 1200) * 0x1p-23;
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(out[i], expected[i], bound) << "row " << i / stride << " column " << i % stride;
    for (size_t i = 0; i < lse.size(); ++i)
      ASSERT_NEAR(lse[i], expected_lse[i], bf16() ? 0.03 : 1e-4) << i;
  }
}

TEST_P(FastAttentionTest, F32RowIsTheSameAloneAndInAChunk) {
  if (bf16()) GTEST_SKIP() << "promised for f32";
  const AttentionSeq wanted[] = {{0, 90, 1000, {}}, {0, 1, 40, {}}};
  Paged paged = Make(Layout(3, 64, 16), 9, wanted);
  const size_t width = paged.q_width();
  const auto q = RandomFloats(paged.rows * width, 3);
  std::vector<float> out(paged.rows * width), alone(out.size());
  fast_->Attention({q.data(), width}, 9, 0.125F, paged.seqs, paged.layout, paged.layer(),
                   {out.data(), width});
  for (const AttentionSeq& seq : paged.seqs)
    for (uint32_t i = 0; i < seq.n_rows; ++i) {
      const AttentionSeq row{seq.first_row + i, 1, seq.active_length + i, seq.block_table};
      fast_->Attention({q.data(), width}, 9, 0.125F, {&row, 1}, paged.layout, paged.layer(),
                       {alone.data(), width});
    }
  EXPECT_EQ(out, alone);
}

constexpr Target kTargets[] = {{Isa::kAvx2, false, 1},
                               {Isa::kAvx512, false, 2},
                               {Isa::kAvx512Bf16, true, 1},
                               {Isa::kAmx, true, 2},
                               {Isa::kAmx, false, 3}};
const auto kName = [](const auto& info) { return testing::PrintToString(info.param); };
INSTANTIATE_TEST_SUITE_P(Targets, FastKernels, testing::ValuesIn(kTargets), kName);
INSTANTIATE_TEST_SUITE_P(Targets, FastAttentionTest, testing::ValuesIn(kTargets), kName);

}  // namespace
}  // namespace hidane::model
