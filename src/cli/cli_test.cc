#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "cli/demo.h"
#include "cli/version.h"

namespace hidane::cli {
namespace {

TEST(Report, WrongValuesAreUsageTheRestIsMissing) {
  EXPECT_EQ(Report({Code::kInvalidArgument, "x", {}}), Exit::kUsage);
  EXPECT_EQ(Report({Code::kUnavailable, "x", {}}), Exit::kMissing);
  EXPECT_EQ(Report({Code::kNotFound, "x", {}}, "do y"), Exit::kMissing);
}

TEST(CacheDir, IsMadeOrNamed) {
  const auto root = std::filesystem::temp_directory_path() / "hidane_cli_test";
  setenv("XDG_CACHE_HOME", root.c_str(), 1);
  const auto dir = CacheDir("logs");
  ASSERT_TRUE(dir.has_value());
  EXPECT_TRUE(std::filesystem::is_directory(*dir));
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  const auto nowhere = CacheDir("logs");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, Code::kUnavailable);
  std::filesystem::remove_all(root);
}

TEST(WriteDocument, NamesAFileThatCannotBeWritten) {
  const Status status = WriteDocument("/proc/nowhere/x.json", "{}");
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kUnavailable);
}

TEST(Demo, KvMemoryHoldsAFairShareButNotAll) {
  const DemoOptions demo;
  const uint32_t tokens = DemoKvTokens(demo, 4);
  EXPECT_GE(tokens, 4600u + 2 * 74);  // 1.15 x 4 tenants of 1,000, and two running requests
  EXPECT_LT(tokens, 6000u);
  EXPECT_GT(DemoKvTokens(demo, 2), tokens);
}

TEST(Demo, APromptsOwnTokensAreATwentiethOfItsStaticOnes) {
  EXPECT_EQ(DemoOf(400).own_tokens, 20u);
  EXPECT_EQ(DemoOf(1).own_tokens, 1u);
  const DemoOptions chosen = DemoOf(0);
  EXPECT_TRUE(chosen.static_tokens == 1000 || chosen.static_tokens == 600) << chosen.static_tokens;
  EXPECT_EQ(chosen.own_tokens * 20, chosen.static_tokens);
}

TEST(Demo, CuredMeansMoreHitsAnEarlierTokenAndNoErrors) {
  DemoResult demo{
      .rows = {{.policy = "round_robin", .requests = 1, .hit_ratio = 0.3, .ttft_p99_s = 4},
               {.policy = "prefix", .requests = 1, .hit_ratio = 0.95, .ttft_p99_s = 1}}};
  EXPECT_TRUE(demo.cured());
  demo.rows[1].errors = 1;
  EXPECT_FALSE(demo.cured());
  demo.rows[1].errors = 0;
  demo.rows[1].ttft_p99_s = 5;
  EXPECT_FALSE(demo.cured());
}

TEST(Version, IsSet) {
  EXPECT_FALSE(Version().empty());
}

}  // namespace
}  // namespace hidane::cli
