#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <set>

#include "base/clock.h"
#include "base/error_map.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/json_out.h"
#include "base/result.h"
#include "base/rng.h"

namespace hidane {
namespace {

static_assert(!std::is_convertible_v<BlockId, SeqId>);
static_assert(!std::is_convertible_v<uint32_t, BlockId>);

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail(Code::kInvalidArgument, "odd number", "n");
  return n / 2;
}
Result<int> Quarter(int n) {
  HIDANE_TRY(const int half, Half(n));
  return Half(half);
}

TEST(ResultTest, TryReturnsTheFirstErrorOrTheValue) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Quarter(7).error().param, "n");
}

TEST(ErrorMapTest, EveryCodeHasAStatusOfItsClassAndAParseableBody) {
  for (int c = 0; c <= static_cast<int>(Code::kInternal); ++c) {
    EXPECT_GE(ToWire(static_cast<Code>(c)).http_status, 400);
  }
  EXPECT_EQ(ErrorBody({Code::kInvalidArgument, "bad \"x\"", "x"}),
            R"({"error":{"message":"bad \"x\"","type":"invalid_request_error",)"
            R"("code":"invalid_value","param":"x"}})");
}

TEST(JsonWriterTest, WritesNestedValuesWithCommasWhereTheyBelong) {
  JsonWriter w;
  w.BeginObject().Field("a", 1).Key("b").BeginArray().Number(1.5).Bool(true).Null().EndArray();
  w.Field("c", "x\ny").EndObject();
  EXPECT_EQ(w.Take(), R"({"a":1,"b":[1.5,true,null],"c":"x\ny"})");
}

TEST(JsonWriterTest, InvalidUtf8BecomesTheReplacementCharacter) {
  std::string out;
  AppendJsonString(out, "a\xff\xc3(\xed\xa0\x80z\xe3\x81\x82");
  EXPECT_EQ(out, "\"a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xe3\x81\x82\"");
}

TEST(HashTest, Sha256KnowsTheStandardVectorAndStartsAnewAfterFinish) {
  Sha256 sha;
  for (int i = 0; i < 2; ++i) {
    sha.Update("abc");  // FIPS 180-4, example B.1
    const Sha256Digest d = sha.Finish();
    EXPECT_EQ(d[0], 0xba);
    EXPECT_EQ(d[1], 0x78);
    EXPECT_EQ(d[31], 0xad);
  }
}

TEST(RngTest, SameSeedSameSequenceOnEveryCompiler) {
  Rng rng(42);
  const uint64_t first = rng.Next();
  EXPECT_EQ(Rng(42).Next(), first);
  EXPECT_NE(Rng(43).Next(), first);
}

RC_GTEST_PROP(RngProps, BelowStaysBelowAndUnitInsideItsInterval, (uint64_t seed)) {
  Rng rng(seed);
  const uint64_t n = 1 + rng.Next() % 1000;
  for (int i = 0; i < 100; ++i) {
    RC_ASSERT(rng.Below(n) < n);
    const double u = rng.Unit();
    RC_ASSERT(u >= 0.0 && u < 1.0);
  }
}

TEST(ManualClockTest, MovesOnlyByHand) {
  ManualClock clock;
  EXPECT_EQ(clock.Now(), TimePoint{});
  clock.Advance(std::chrono::seconds(2));
  EXPECT_DOUBLE_EQ(Seconds(clock.Now()), 2.0);
}

}  // namespace
}  // namespace hidane
