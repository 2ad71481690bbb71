#include "prompt/block_hash.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <string>
#include <vector>

#include "base/hash.h"
#include "base/rng.h"

namespace hidane::prompt {
namespace {

TEST(HashBlocksTest, GivesXxh3OfEachBlockOnEveryInstructionSet) {
  constexpr size_t kBlocks = 40;
  Rng rng(1);
  std::string text(kBlocks * kChainBlockBytes + 1, '\0');
  for (char& c : text) c = static_cast<char>(rng.Next());
  for (int64_t sets = hwy::SupportedTargets(); sets != 0; sets &= sets - 1) {
    hwy::SetSupportedTargetsForTest(sets & -sets);
    hwy::GetChosenTarget().DeInit();
    std::vector<uint64_t> hashes(kBlocks);
    HashBlocks(text.data() + 1, kBlocks, hashes.data());
    for (size_t i = 0; i < kBlocks; ++i)
      EXPECT_EQ(hashes[i], Xxh3(text.data() + 1 + i * kChainBlockBytes, kChainBlockBytes))
          << hwy::TargetName(sets & -sets);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace
}  // namespace hidane::prompt
