#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "model/cpu.h"
#include "model/dequantize.h"
#include "model/kernels.h"
#include "model/panels.h"

/// What f32 promises bit for bit: a weight is what the scalar decoder makes of it, and an output is
/// one chain of fused multiply-adds in the order of the inputs, however many rows come with it.
namespace hidane::model {
namespace {

using Case = std::tuple<Isa, TensorType>;

class F32Bits : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Isa isa = std::get<Isa>(GetParam());
    SetIsaCeiling(isa);
    if (BestIsa() != isa) GTEST_SKIP() << "this CPU has no " << IsaName(isa);
  }
  void TearDown() override { SetIsaCeiling(Isa::kAmx); }

  TensorType type() const { return std::get<TensorType>(GetParam()); }

  /// Blocks of any quants; scales and minima of every finite magnitude below 2^(exponent + 1).
  std::vector<std::byte> Weights(size_t n, uint32_t exponent) {
    const BlockTraits traits = TraitsOf(type());
    std::vector<std::byte> bytes(n / traits.elements * traits.bytes);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng_.Next());
    const size_t halves = type() == TensorType::kQ4_1 ? 2 : 1;
    for (size_t block = 0; block < bytes.size(); block += traits.bytes)
      for (size_t at = block; at < block + 2 * halves; at += 2) {
        const uint64_t random = rng_.Next(), magnitude = random % ((exponent + 16) << 10);
        const auto half = static_cast<uint16_t>(magnitude | (random >> 48 & 0x8000));
        std::memcpy(&bytes[at], &half, sizeof half);
      }
    return bytes;
  }
  std::vector<float> Dequantized(const std::vector<std::byte>& bytes, size_t n) {
    std::vector<float> values(n);
    Dequantize(type(), bytes, values);
    return values;
  }
  std::vector<float> RandomFloats(size_t n) {
    std::vector<float> values(n);
    for (float& value : values) value = 2 * static_cast<float>(rng_.Unit()) - 1;
    return values;
  }

  Rng rng_{11};
};

TEST_P(F32Bits, ADecodedWeightIsTheScalarDecoders) {
  constexpr uint32_t kBlocks = 64, kIn = kBlocks * kBlockInputs;
  const auto data = Weights(size_t{kPanel} * kIn, 15);
  const WeightView view{type(), data.data(), kPanel, kIn};
  const PanelType packed_type = PackedType(type(), false);
  std::vector<std::byte> packed(PackedBytes(packed_type, kPanel, kIn));
  PackPanels(view, packed_type, packed.data());
  std::vector<float> decoded(size_t{kPanel} * kIn);
  DecodeF32(packed_type, packed.data(), kBlocks, decoded.data());
  const auto expected = Dequantized(data, decoded.size());
  for (uint32_t row = 0; row < kPanel; ++row)
    for (uint32_t k = 0; k < kIn; ++k)
      ASSERT_EQ(decoded[k * kPanel + row], expected[row * kIn + k]) << row << ", " << k;
}

TEST_P(F32Bits, AnOutputIsOneFusedChainInAnyBatch) {
  constexpr uint32_t kMost = 70, kFirst = 112, kSecond = 37, kOut = kFirst + kSecond;
  for (const uint32_t in : {32u, 96u, 608u}) {
    const auto first = Weights(size_t{kFirst} * in, 0), second = Weights(size_t{kSecond} * in, 0);
    const WeightView parts[] = {{type(), first.data(), kFirst, in},
                                {type(), second.data(), kSecond, in}};
    auto weights = Dequantized(first, size_t{kFirst} * in);
    const auto more = Dequantized(second, size_t{kSecond} * in);
    weights.insert(weights.end(), more.begin(), more.end());
    const auto x = RandomFloats(size_t{kMost} * in), before = RandomFloats(size_t{kMost} * kOut);
    std::vector<float> expected = before;
    for (uint32_t i = 0; i < kMost; ++i)
      for (uint32_t j = 0; j < kOut; ++j)
        for (uint32_t l = 0; l < in; ++l)
          expected[i * kOut + j] =
              std::fma(x[i * in + l], weights[j * in + l], expected[i * kOut + j]);
    const auto kernels = MakeFastKernels(1, false);
    const auto linear = kernels->MakeLinear(parts);
    for (uint32_t m = 1; m <= kMost; m += m < 33 ? 1 : 37) {
      std::vector<float> y = before;
      linear->Apply({x.data(), in}, m, {y.data(), kOut}, Linear::Output::kAdd);
      for (size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], i < size_t{m} * kOut ? expected[i] : before[i])
            << "in " << in << " m " << m << " at " << i / kOut << ", " << i % kOut;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, F32Bits,
                         testing::Combine(testing::Values(Isa::kAvx2, Isa::kAvx512),
                                          testing::Values(TensorType::kQ4_1, TensorType::kQ8_0)),
                         [](const auto& test) {
                           return std::string(IsaName(std::get<Isa>(test.param))) +
                                  (std::get<TensorType>(test.param) == TensorType::kQ4_1 ? "_q4_1"
                                                                                         : "_q8_0");
                         });

}  // namespace
}  // namespace hidane::model
