#include "gateway/usage.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace hidane::gateway {
namespace {

constexpr char kText[] = R"(data: {"id":"c","choices":[{"delta":{"content":"hi \"usage\""}}]})";
constexpr char kEarlyNull[] = R"(data: {"choices":[{"delta":{"content":"a"}}],"usage":null})";
constexpr char kUsageOnly[] =
    R"(data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,)"
    R"("total_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}})";
constexpr char kUsageInFinish[] =
    R"(data: {"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":7,)"
    R"("completion_tokens":2}})";
constexpr char kUsageWithEmptyDelta[] =
    R"(data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":7,"completion_tokens":2}})";
constexpr char kDone[] = "data: [DONE]";

std::string Stream(const std::vector<std::string>& events, const std::string& line_end = "\n") {
  std::string out;
  for (const auto& event : events) out += event + line_end + line_end;
  return out;
}

struct Outcome {
  std::string bytes;
  std::optional<Usage> usage;
};

Outcome Filtered(bool remove, std::string_view in, const std::vector<size_t>& cuts,
                 size_t held_max = 1 << 16) {
  UsageFilter filter(remove, held_max);
  std::string bytes;
  size_t from = 0;
  for (size_t cut : cuts) {
    cut = std::min(cut, in.size() - from);
    bytes += filter.Feed(in.substr(from, cut));
    from += cut;
  }
  bytes += filter.Feed(in.substr(from));
  bytes += filter.Finish();
  return {bytes, filter.usage()};
}

TEST(UsageFilterTest, TakesOutTheUsageOnlyEventAndNothingElse) {
  const Outcome out = Filtered(true, Stream({kText, kEarlyNull, kUsageOnly, kDone}), {});
  EXPECT_EQ(out.bytes, Stream({kText, kEarlyNull, kDone}));
  EXPECT_EQ(out.usage, (Usage{7, 4, 2}));
}

TEST(UsageFilterTest, LeavesUsageThatComesWithAChoice) {
  for (const char* event : {kUsageInFinish, kUsageWithEmptyDelta}) {
    const std::string in = Stream({kText, event, kDone});
    const Outcome out = Filtered(true, in, {});
    EXPECT_EQ(out.bytes, in);
    EXPECT_EQ(out.usage, (Usage{7, -1, 2}));
  }
}

TEST(UsageFilterTest, PassesEverythingWhenTheClientAsked) {
  const std::string in = Stream({kText, kUsageOnly, kDone});
  EXPECT_EQ(Filtered(false, in, {3}).bytes, in);
  EXPECT_EQ(Filtered(false, in, {3}).usage, (Usage{7, 4, 2}));
}

TEST(UsageFilterTest, SeveralChoicesHaveOneUsage) {
  const auto chunk = [](int index, std::string_view rest) {
    return R"(data: {"choices":[{"index":)" + std::to_string(index) + "," + std::string(rest) +
           R"(}],"usage":null})";
  };
  const std::vector<std::string> text = {chunk(1, R"("delta":{"content":"b"})"),
                                         chunk(0, R"("delta":{},"finish_reason":"stop")"),
                                         chunk(1, R"("delta":{},"finish_reason":"length")")};
  const Outcome out = Filtered(true, Stream({text[0], text[1], text[2], kUsageOnly, kDone}), {3});
  EXPECT_EQ(out.bytes, Stream({text[0], text[1], text[2], kDone}));
  EXPECT_EQ(out.usage, (Usage{7, 4, 2}));
}

TEST(UsageFilterTest, SeesNoUsageWhereThereIsNone) {
  const Outcome out = Filtered(true, Stream({kText, kDone}), {});
  EXPECT_EQ(out.usage, std::nullopt);
}

TEST(UsageFilterTest, ALongEventIsNotHeldBack) {
  UsageFilter filter(true, 16);
  const std::string start = "data: " + std::string(20, 'x');
  EXPECT_EQ(filter.Feed(start), start);
  EXPECT_EQ(filter.Feed("more"), "more");
  EXPECT_EQ(filter.Feed("\n\ndata: y"), "\n\n");
  EXPECT_EQ(filter.Finish(), "data: y");
}

TEST(UsageFilterTest, AnUnfinishedUsageEventIsSentOn) {
  const std::string in = Stream({kText}) + kUsageOnly;
  EXPECT_EQ(Filtered(true, in, {}).bytes, in);
}

RC_GTEST_PROP(UsageFilterProperty, AnySplitGivesTheSameBytes, ()) {
  const std::vector<std::string> kinds = {kText, kEarlyNull,     kUsageOnly, kUsageInFinish,
                                          kDone, ": keep-alive", "",         "event: x\ndata: 1"};
  const auto picks =
      *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kinds.size()));
  const std::string line_end = *rc::gen::element<std::string>("\n", "\r\n", "\r");
  const bool remove = *rc::gen::arbitrary<bool>();
  std::string in, want;
  for (const size_t pick : picks) {
    const std::string event = Stream({kinds[pick]}, line_end);
    in += event;
    if (!remove || kinds[pick] != kUsageOnly) want += event;
  }
  const auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 40));
  const size_t held_max = 4096;
  RC_ASSERT(Filtered(remove, in, cuts, held_max).bytes == want);
}

RC_GTEST_PROP(UsageFilterProperty, BytesThatAreNoStreamPassUnchanged, ()) {
  const auto in =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\r\n{}\"usage:dat[]0 \\")));
  const auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 8));
  RC_ASSERT(Filtered(true, in, cuts).bytes == in);
}

TEST(UsageTailTest, ReadsUsageFromTheEndOfALongAnswer) {
  const std::string in = R"({"choices":[{"message":{"content":")" + std::string(100'000, 'x') +
                         R"("}}],"usage":{"prompt_tokens":7,"completion_tokens":2,)"
                         R"("prompt_tokens_details":{"cached_tokens":0}},"kv_transfer_params":{}})";
  UsageTail tail;
  for (size_t i = 0; i < in.size(); i += 777) tail.Feed(std::string_view(in).substr(i, 777));
  EXPECT_EQ(tail.Finish(), (Usage{7, 0, 2}));
}

TEST(UsageTailTest, KnowsTheResponsesFormAndAnswersWithoutUsage) {
  UsageTail responses, none, cut;
  responses.Feed(R"({"usage" : {"input_tokens":3,"output_tokens":1}})");
  EXPECT_EQ(responses.Finish(), (Usage{3, -1, 1}));
  none.Feed(R"({"usage":null})");
  EXPECT_EQ(none.Finish(), std::nullopt);
  cut.Feed(R"({"usage":{"prompt_tokens":3)");
  EXPECT_EQ(cut.Finish(), std::nullopt);
}

}  // namespace
}  // namespace hidane::gateway
