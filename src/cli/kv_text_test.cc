#include "cli/kv_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hidane::cli {
namespace {

using ::testing::HasSubstr;

TEST(KvTextTest, ShowsMemoryAndWhoLives) {
  const auto text = KvText(
      R"({"block_size":4,"blocks":10,"blocks_free":5,"blocks_published":3,"sequences":[
          {"id":7,"policy":"h2o","running":true,"prompt_tokens":20,"tokens":24,"slots":9,"blocks":3,
           "blocks_unmoved":5,"live":[100,50,0,1,25,75]},
          {"id":8,"policy":"none","running":true,"prompt_tokens":4,"tokens":6,"slots":6,"blocks":2,
           "blocks_unmoved":2,"live":[100,100]}]})",
      52);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("5 of 10 blocks of 4 held, 3 in the prefix cache"));
  EXPECT_THAT(*text, HasSubstr("memory |████████████████████····················|"));
  EXPECT_THAT(*text,
              HasSubstr("#7  policy h2o: 24 tokens, 9 live, 3 blocks (5 if none had moved)"));
  EXPECT_THAT(*text, HasSubstr("stream |█▄ ▁▂▆|"));
  EXPECT_THAT(*text, HasSubstr("blocks |██▂|"));
  EXPECT_THAT(*text, HasSubstr("#8  policy none: 6 tokens, 6 live, 2 blocks\n"));
  EXPECT_THAT(*text, HasSubstr("blocks |█▄|"));
}

TEST(KvTextTest, ALongStreamIsSqueezed) {
  std::string live = "100";
  for (int i = 1; i < 80; ++i) live += i < 40 ? ",100" : ",0";
  const auto text = KvText(R"({"block_size":4,"blocks":99,"blocks_free":9,"sequences":[
      {"id":1,"policy":"h2o","tokens":320,"slots":160,"blocks":40,"blocks_unmoved":40,"live":[)" +
                               live + "]}]}",
                           52);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("stream |████████████████████                    |"));
  EXPECT_THAT(*text, HasSubstr("blocks |████████████████████|"));
}

TEST(KvTextTest, AnythingElseIsNoMap) {
  EXPECT_FALSE(KvText("", 80));
  EXPECT_FALSE(KvText("{}", 80));
  EXPECT_FALSE(KvText(R"({"sequences":3})", 80));
}

}  // namespace
}  // namespace hidane::cli
