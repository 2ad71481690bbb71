#include <gtest/gtest.h>

#include <vector>

#include "base/rng.h"
#include "model/tile.h"

namespace hidane::model {
namespace {

constexpr uint32_t kM = 23, kK = 40, kPanels = 2;

std::vector<float> RandomFloats(size_t n, Rng& rng) {
  std::vector<float> values(n);
  for (float& value : values) value = 2 * static_cast<float>(rng.Unit()) - 1;
  return values;
}

/// `vectors` vectors of `n` floats, in another order than they are asked for.
struct Scattered {
  std::vector<float> memory;
  std::vector<const float*> places;

  Scattered(uint32_t vectors, uint32_t n, Rng& rng) : memory(RandomFloats(vectors * n, rng)) {
    constexpr uint32_t kStep = 7;  // no divisor of 23 or 40
    for (uint32_t i = 0; i < vectors; ++i) places.push_back(&memory[i * kStep % vectors * n]);
  }
};

/// The same product from a copy that lies at equal distances.
std::vector<float> Copied(GemmArgs<float> args, std::vector<float> sums) {
  std::vector<float> a(size_t{kM} * kK);
  for (uint32_t i = 0; i < kM; ++i)
    for (uint32_t l = 0; l < kK; ++l)
      a[i * kK + l] = args.by_column ? args.rows[l][i] : args.rows[i][l];
  args.a = a.data();
  args.rows = nullptr;
  args.c = sums.data();
  GemmF32(args);
  return sums;
}

TEST(GemmF32Test, RowsAndColumnsThatLieAnywhereGiveTheBitsOfACopy) {
  Rng rng(3);
  const std::vector<float> b = RandomFloats(size_t{kPanels} * kK * kPanel, rng);
  const std::vector<float> before = RandomFloats(size_t{kM} * kPanels * kPanel, rng);
  const Scattered rows(kM, kK, rng), columns(kK, kM, rng);
  for (const bool by_column : {false, true})
    for (const bool add : {false, true})
      for (const uint32_t wanted : {3u, kPanel}) {
        std::vector<float> sums = before;
        const GemmArgs<float> args{
            nullptr,  kK,          1,
            b.data(), kM,          kPanels,
            kK,       sums.data(), kPanels * kPanel,
            add,      wanted,      by_column ? columns.places.data() : rows.places.data(),
            by_column};
        GemmF32(args);
        EXPECT_EQ(sums, Copied(args, before)) << by_column << add << wanted;
      }
}

}  // namespace
}  // namespace hidane::model
