#include "sim/trace_replay.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "sim/trace_test_util.h"

namespace hidane::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr std::string_view kTimed =
    R"({"timestamp": 1000, "input_length": 600, "output_length": 3, "hash_ids": [0, 1]})"
    "\n"
    R"({"timestamp": 3000, "input_length": 700, "output_length": 3, "hash_ids": [0, 2]})"
    "\n"
    R"({"timestamp": 10000, "input_length": 700, "output_length": 3, "hash_ids": [0, 2]})";

std::shared_ptr<const Trace> Shared(std::string_view text) {
  return std::make_shared<const Trace>(MustParse(text));
}

std::vector<Request> AllNext(Workload& workload) {
  std::vector<Request> all;
  while (auto request = workload.Next()) all.push_back(*std::move(request));
  return all;
}

/// Sessions of `turns` turns that think for 2 s; each prompt goes on with the answer.
Trace Sessions(uint32_t sessions, uint32_t turns) {
  TraceBuilder builder(TraceFormat::kGenerated, 64);
  for (uint32_t s = 0; s < sessions; ++s) {
    builder.AddSession();
    for (uint32_t t = 0; t < turns; ++t) {
      const uint32_t tokens = 640 + 128 * t;
      EXPECT_TRUE(builder.AddTurn(s, {.think = seconds(2),
                                      .input_tokens = tokens,
                                      .output_tokens = 70,
                                      .keep = t == 0 ? 0 : 10 + 2 * (t - 1),
                                      .k2_end = 1}));
      builder.AddRun(OwnIds(s, t), t == 0 ? 640 : 128);
    }
  }
  return builder.Finish();
}

TEST(TraceReplay, TimedRequestsAreSentAtTheirTimesWhateverHappens) {
  TraceReplay replay(Shared(kTimed), {});
  const auto requests = AllNext(replay);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].arrival, milliseconds(1000));
  EXPECT_EQ(requests[2].arrival, milliseconds(10'000));
  EXPECT_EQ(requests[1].prompt.chain, requests[2].prompt.chain);
  EXPECT_EQ(requests[1].prompt.tokens, 700u);
  EXPECT_EQ(requests[1].tenant, requests[2].tenant);  // one conversation, one tenant
  EXPECT_FALSE(replay.After({.request = requests[0]}, seconds(2)));
}

TEST(TraceReplay, TimeScaleTwoHalvesTheTimes) {
  TraceReplay replay(Shared(kTimed), {.time_scale = 2});
  EXPECT_EQ(AllNext(replay)[1].arrival, milliseconds(1500));
}

TEST(TraceReplay, CopiesShareNoBlockAndComeMergedByTime) {
  TraceReplay replay(Shared(kTimed), {.overlay = 5});
  const auto requests = AllNext(replay);
  ASSERT_EQ(requests.size(), 15u);
  EXPECT_EQ(replay.requests(), 15u);
  std::map<uint64_t, int> first_blocks;
  TimePoint last{};
  for (const Request& request : requests) {
    ++first_blocks[request.prompt.chain[0]];
    EXPECT_GE(request.arrival, last);
    last = request.arrival;
  }
  EXPECT_EQ(first_blocks.size(), 5u);
  for (const auto& [block, times] : first_blocks) EXPECT_EQ(times, 3);
  // Copy 1 of 5 begins 2 s into the trace: 3 s and 10 s, and then the next round's 1 s.
  EXPECT_EQ(requests[0].arrival, milliseconds(1000));
  EXPECT_EQ(requests[1].arrival, milliseconds(1000));
  EXPECT_LE(last, milliseconds(10'000));
}

TEST(TraceReplay, NoSessionBeginsAfterEnoughRequests) {
  TraceReplay replay(Shared(kTimed), {.overlay = 5, .requests = 4});
  EXPECT_EQ(replay.requests(), 4u);
  EXPECT_EQ(AllNext(replay).size(), 4u);
}

TEST(TraceReplay, ATurnWaitsForTheAnswerAndForItsOwnTime) {
  const auto trace = Shared(
      R"({"chat_id": 5, "timestamp": 0, "input_length": 16, "hash_ids": [1]})"
      "\n"
      R"({"chat_id": 6, "parent_chat_id": 5, "timestamp": 10, "input_length": 16, "hash_ids": [1]})");
  for (const auto& [answered, sent] :
       {std::pair{seconds(3), seconds(10)}, {seconds(12), seconds(12)}}) {
    TraceReplay replay(trace, {});
    const auto first = replay.Next();
    EXPECT_FALSE(replay.Next());
    const auto second = replay.After({.request = *first}, answered);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->arrival, sent);
    EXPECT_EQ(second->conversation, first->conversation);
    EXPECT_FALSE(replay.After({.request = *second}, seconds(20)));
  }
}

TEST(TraceReplay, ASessionBeginsWhenOneEnds) {
  const auto trace = std::make_shared<const Trace>(Sessions(5, 2));
  TraceReplay replay(trace, {.sessions = 2, .think_max = seconds(1), .uncounted = 0.2});
  std::vector<Request> open = AllNext(replay);
  ASSERT_EQ(open.size(), 2u);
  std::set<uint64_t> conversations;
  TimePoint now = seconds(5);
  uint64_t sent = 0, counted = 0;
  while (!open.empty()) {
    const Request done = std::move(open.front());
    open.erase(open.begin());
    ++sent;
    counted += done.counted;
    const bool ends = !conversations.insert(done.conversation).second;
    if (auto next = replay.After({.request = done}, now)) {
      EXPECT_EQ(next->conversation == done.conversation, !ends);
      EXPECT_EQ(next->arrival, ends ? now : now + seconds(1));
      open.push_back(*std::move(next));
    }
    now += seconds(1);
  }
  EXPECT_EQ(sent, 10u);
  EXPECT_EQ(counted, 6u) << "two warm up; two follow when no session is left to begin";
  EXPECT_EQ(conversations.size(), 5u);
}

TEST(TraceReplay, TheAnswersBlocksAreThoseOfTheNextPrompt) {
  const auto trace = std::make_shared<const Trace>(Sessions(1, 2));
  TraceReplay replay(trace, {});
  const auto first = replay.Next();
  const auto second = replay.After({.request = *first}, seconds(1));
  ASSERT_TRUE(second);
  EXPECT_THAT(first->answer_ends, ElementsAre(704));  // 70 tokens fill one block of 64
  EXPECT_EQ(first->answer_chain[0], second->prompt.chain[10]);
  EXPECT_TRUE(second->answer_chain.empty());
}

TEST(TraceReplay, AnEditedPromptDoesNotGoOnWithTheAnswer) {
  Trace trace = Sessions(1, 2);
  trace.turns[1].keep = 9;  // the last block is another one
  trace.runs[1].tokens += 64;
  TraceReplay replay(std::make_shared<const Trace>(trace), {});
  EXPECT_TRUE(replay.Next()->answer_chain.empty());
}

TEST(TraceReplay, OrderOfSessionsIsTheSeeds) {
  const auto trace = std::make_shared<const Trace>(Sessions(20, 1));
  const auto order = [&](uint64_t seed) {
    TraceReplay replay(trace, {.seed = seed, .sessions = 20});
    std::vector<uint64_t> conversations;
    for (const Request& request : AllNext(replay)) conversations.push_back(request.conversation);
    return conversations;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
  const auto once = order(3);
  EXPECT_EQ(std::set<uint64_t>(once.begin(), once.end()).size(), 20u);
}

}  // namespace
}  // namespace hidane::sim
