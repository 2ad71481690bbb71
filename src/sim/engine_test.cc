#include "sim/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <map>
#include <set>
#include <string>

#include "base/rng.h"
#include "sim/engine_test_util.h"

namespace hidane::sim {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

void AddBlock(Request& request, uint64_t contents, uint32_t tokens) {
  prompt::Identity& p = request.prompt;
  p.tokens = p.bytes() + tokens;
  p.ends.push_back(p.tokens);
  p.chain.push_back(Mix64(p.HashAt(p.size()) ^ Mix64(contents)));
}

// A tenant's static tokens, then tokens of this request alone.
Request Make(uint64_t id, uint64_t tenant, uint32_t fixed, uint32_t own, uint32_t output = 1) {
  Request request;
  request.id = id;
  request.output_tokens = output;
  if (fixed > 0) AddBlock(request, tenant, fixed);
  request.prompt.k1_end = static_cast<uint32_t>(request.prompt.size());
  if (own > 0) AddBlock(request, 1'000'000 + id, own);
  return request;
}

// Turns the crank in virtual time and writes down what happens.
class Driver {
 public:
  explicit Driver(const EngineOptions& options) : engine(options) {}

  Engine engine;
  std::vector<std::string> log;         // `1 first 1010`: request, what, milliseconds
  std::map<uint64_t, uint32_t> cached;  // by request
  TimePoint now{};

  void Run() {
    while (Step()) {
    }
  }
  bool Step() {
    const auto taken = engine.BeginStep();
    if (!taken) return false;
    now += *taken;
    End();
    return true;
  }
  void End() {
    for (const StepEvent& e : engine.EndStep()) {
      const bool first = e.kind == StepEvent::Kind::kFirstToken;
      log.push_back(std::to_string(e.id) + (first ? " first " : " end ") +
                    std::to_string(std::chrono::duration_cast<milliseconds>(now).count()));
      cached[e.id] = e.cached_tokens;
    }
  }
};

TEST(SimEngineTest, AColdRequestIsPrefilledAndDecodedAndAWarmOneComputesItsOwnTokensOnly) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 7, 960, 40, 3));
  d.Run();
  EXPECT_THAT(d.log, ElementsAre("1 first 1010", "1 end 1022"));
  d.engine.Submit(Make(2, 7, 960, 40, 1));
  d.Run();
  EXPECT_THAT(d.log, ElementsAre("1 first 1010", "1 end 1022", "2 first 1072", "2 end 1072"));
  EXPECT_EQ(d.cached[1], 0u);
  EXPECT_EQ(d.cached[2], 960u);
}

TEST(SimEngineTest, TheSamePrefixAtTheSameTimeIsComputedOnce) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 7, 960, 40, 2));
  d.engine.Submit(Make(2, 7, 960, 40, 1));
  d.Run();  // the second: 10 + 40 ms of prefill beside 5 + 1 ms of the first's decode
  EXPECT_THAT(d.log, ElementsAre("1 first 1010", "1 end 1066", "2 first 1066", "2 end 1066"));
}

TEST(SimEngineTest, ALongPromptIsComputedInChunks) {
  Driver d(RoundNumbers(64'000));
  d.engine.Submit(Make(1, 7, 20'000, 0));
  EXPECT_EQ(d.engine.BeginStep(), milliseconds(8'202));
  d.engine.EndStep();
  EXPECT_EQ(d.engine.BeginStep(), milliseconds(8'202));
  d.engine.EndStep();
  EXPECT_EQ(d.engine.BeginStep(), milliseconds(3'626));
  EXPECT_EQ(d.engine.EndStep().size(), 2u);
}

TEST(SimEngineTest, SequencesDecodeTogether) {
  Driver d(RoundNumbers());
  for (uint64_t id = 1; id <= 3; ++id) d.engine.Submit(Make(id, id, 0, 50, 5));
  EXPECT_EQ(d.engine.BeginStep(), milliseconds(160));
  d.engine.EndStep();
  EXPECT_EQ(d.engine.BeginStep(), milliseconds(8));
  EXPECT_EQ(d.engine.EndStep().size(), 0u);
}

TEST(SimEngineTest, ARequestWaitsUntilItsBlocksAreFree) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 1, 0, 3'200, 2));
  d.engine.Submit(Make(2, 2, 0, 3'200, 1));
  d.Step();
  EXPECT_EQ(d.engine.running(), 1u);
  EXPECT_EQ(d.engine.waiting(), 1u);
  d.Run();
  EXPECT_THAT(d.log, ElementsAre("1 first 3210", "1 end 3216", "2 first 6426", "2 end 6426"));
}

TEST(SimEngineTest, RefusesWhatCouldNeverFit) {
  Driver d(RoundNumbers());
  EXPECT_FALSE(d.engine.Submit(Make(1, 1, 0, 6'390, 11)));
  EXPECT_FALSE(d.Step());
  EXPECT_TRUE(d.engine.Submit(Make(1, 1, 0, 6'390, 10)));
}

TEST(SimEngineTest, TheNextTurnFindsTheAnswerCached) {
  Driver d(RoundNumbers());
  Request first = Make(1, 7, 600, 40, 200);
  Request next = Make(2, 7, 600, 0, 1);
  next.prompt = first.prompt;
  AddBlock(next, 99, 100);  // the answer, in two blocks of the chain
  AddBlock(next, 98, 100);
  first.answer_chain = {next.prompt.chain.begin() + 2, next.prompt.chain.end()};
  first.answer_ends = {next.prompt.ends.begin() + 2, next.prompt.ends.end()};
  AddBlock(next, 97, 30);  // the user again
  d.engine.Submit(first);
  d.Run();
  d.engine.Submit(next);
  d.Run();
  EXPECT_EQ(d.cached[2], 832u);  // full blocks of 840 tokens, the last one generated included
}

TEST(SimEngineTest, PromptsEndsStayCachedUnlessOnlyStaticPrefixesDo) {
  for (const bool cache_tails : {true, false}) {
    EngineOptions options = RoundNumbers();
    options.cache_tails = cache_tails;
    Driver d(options);
    const Request request = Make(1, 7, 640, 320);
    Request same = request;
    same.id = 2;
    d.engine.Submit(request);
    d.Run();
    d.engine.Submit(same);
    d.Run();
    EXPECT_EQ(d.cached[2], cache_tails ? 896u : 640u);
  }
}

TEST(SimEngineTest, TheGranularityOfTheChainMakesNoDifferenceBeyondABlock) {
  for (const uint32_t granularity : {16u, 64u, 512u}) {
    Driver d(RoundNumbers());
    for (uint64_t id = 1; id <= 2; ++id) {
      Request request;
      request.id = id;
      for (uint32_t i = 0; i * granularity < 1'024; ++i) AddBlock(request, i, granularity);
      AddBlock(request, 1'000 + id, 100);
      d.engine.Submit(request);
      d.Run();
    }
    EXPECT_EQ(d.cached[2], 1'024u);
  }
}

TEST(SimEngineTest, ARestartLosesRequestsAndCache) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 7, 960, 40));
  d.Run();
  for (uint64_t id = 2; id <= 3; ++id) d.engine.Submit(Make(id, 7, 960, 40));
  d.engine.BeginStep();
  EXPECT_THAT(d.engine.Restart(), ElementsAre(2, 3));
  EXPECT_FALSE(d.engine.stepping());
  EXPECT_FALSE(d.Step());
  EXPECT_EQ(d.engine.kv_tokens_cached() + d.engine.kv_tokens_held(), 0u);
  d.engine.Submit(Make(2, 7, 960, 40));
  d.Run();
  EXPECT_EQ(d.cached[2], 0u);
}

TEST(SimEngineTest, ACancelledRequestIsInNoEventAndGivesItsBlocksBack) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 7, 960, 40, 9));
  d.engine.Submit(Make(2, 8, 960, 40, 9));
  d.engine.BeginStep();
  d.engine.Cancel(1);
  d.engine.Cancel(1);
  d.engine.Cancel(77);
  d.End();
  EXPECT_THAT(d.log, ElementsAre("2 first 0"));
  d.engine.Cancel(2);
  EXPECT_EQ(d.engine.kv_tokens_held(), 0u);
  EXPECT_FALSE(d.Step());
}

TEST(SimEngineTest, TimeIsSplitOverStaticOwnAndRecomputedTokens) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 7, 960, 40, 2));
  d.Run();
  EXPECT_NEAR(d.engine.time().busy, 1.016, 1e-9);
  EXPECT_NEAR(d.engine.time().prefill, 1.010, 1e-9);
  EXPECT_NEAR(d.engine.time().static_prefill, 0.960 * 1.010, 1e-9);
  EXPECT_EQ(d.engine.time().recompute, 0);
  d.engine.Submit(Make(2, 8, 0, 6'400 - 64));  // takes nearly all of the memory
  d.Run();
  const EngineTime before = d.engine.time();
  EXPECT_NEAR(before.static_prefill, 0.960 * 1.010, 1e-9);
  d.engine.Submit(Make(3, 7, 960, 40));
  d.Run();
  const EngineTime after = d.engine.time();
  const uint32_t again = 960 - d.cached[3];
  EXPECT_GE(again, 896u);
  const double scale = (again + 50.0) / (again + 40.0);
  EXPECT_NEAR(after.recompute - before.recompute, again * scale / 1000, 1e-9);
  EXPECT_NEAR(after.static_recompute - before.static_recompute, again * scale / 1000, 1e-9);
}

TEST(SimEngineTest, TheYoungestGivesWayWhenMemoryRunsOut) {
  Driver d(RoundNumbers());
  d.engine.Submit(Make(1, 1, 0, 3'000, 2'000));
  d.engine.Submit(Make(2, 2, 0, 3'000, 2'000));
  d.Run();
  EXPECT_EQ(d.engine.preemptions(), 1u);
  EXPECT_EQ(d.log.size(), 4u);
  EXPECT_EQ(d.engine.kv_tokens_held(), 0u);
}

// What happened to each request: nothing is lost, nothing is told twice.
RC_GTEST_PROP(SimEngineProps, EveryRequestEndsOnceAndEveryBlockComesBack,
              (const std::vector<uint16_t>& ops)) {
  Driver d(RoundNumbers(64 * 20));
  std::set<uint64_t> open;
  uint64_t next = 1;
  for (const uint16_t op : ops) {
    Rng rng(op);
    switch (op % 8) {
      case 0:
      case 1:
      case 2: {
        const Request request = Make(next, rng.Below(3), 64 * static_cast<uint32_t>(rng.Below(6)),
                                     1 + static_cast<uint32_t>(rng.Below(300)),
                                     1 + static_cast<uint32_t>(rng.Below(200)));
        RC_ASSERT(d.engine.Submit(request));
        open.insert(next++);
        break;
      }
      case 3:
        d.engine.Cancel(1 + op / 8 % next);
        open.erase(1 + op / 8 % next);
        break;
      case 4:
        if (op % 64 == 4) {
          const auto lost = d.engine.Restart();
          RC_ASSERT(std::set(lost.begin(), lost.end()) == open);
          open.clear();
        }
        break;
      default:
        for (int i = 0; i < 10 && d.Step(); ++i) {
        }
    }
    for (const std::string& line : std::exchange(d.log, {})) {
      const uint64_t id = std::stoull(line);
      RC_ASSERT(open.contains(id));
      if (line.find("end") != std::string::npos) open.erase(id);
    }
    RC_ASSERT(d.engine.running() + d.engine.waiting() == open.size());
  }
  d.Run();
  for (const std::string& line : d.log) {
    if (line.find("end") != std::string::npos) RC_ASSERT(open.erase(std::stoull(line)) == 1u);
  }
  RC_ASSERT(open.empty());
  RC_ASSERT(d.engine.kv_tokens_held() == 0u);
}

}  // namespace
}  // namespace hidane::sim
