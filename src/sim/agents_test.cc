#include "sim/agents.h"

#include <gtest/gtest.h>

#include "sim/agents_table.h"
#include "sim/scenario_agents.h"
#include "sim/trace_stats.h"
#include "sim/trace_test_util.h"

namespace hidane::sim {
namespace {

/// A trace of the sessions of `trace` alone.
Trace Compact(const Trace& trace) {
  TraceBuilder out(TraceFormat::kGenerated, trace.block_tokens);
  for (const TraceSession& session : trace.sessions) {
    const uint32_t number = out.AddSession();
    for (const TraceTurn& turn : trace.TurnsOf(session)) {
      EXPECT_TRUE(out.AddTurn(number, turn));
      for (const TraceRun& run : trace.RunsOf(turn)) out.AddRun(run.first, run.tokens);
    }
  }
  return out.Finish();
}

TEST(Agents, SameSeedSameSessions) {
  const Trace a = GenerateAgents({.seed = 4, .sessions = 20});
  const Trace b = GenerateAgents({.seed = 4, .sessions = 20});
  const Trace c = GenerateAgents({.seed = 5, .sessions = 20});
  EXPECT_EQ(ChainsOf(a, 7), ChainsOf(b, 7));
  EXPECT_NE(ChainsOf(a, 7), ChainsOf(c, 7));
}

TEST(Agents, EveryPromptIsWhatItsTurnSaysAndWithinTheBound) {
  const Trace trace = GenerateAgents({.seed = 2, .sessions = 200});
  for (const TraceSession& session : trace.sessions) {
    PromptBuilder prompt;
    for (const TraceTurn& turn : trace.TurnsOf(session)) {
      ASSERT_LE(turn.keep, prompt.chain().size());
      prompt.Apply(trace, turn);
      ASSERT_EQ(prompt.ends().back(), turn.input_tokens);
      ASSERT_LE(turn.input_tokens, agents::kContextMax);
      ASSERT_LE(turn.k1_end, turn.k2_end);
      ASSERT_LE(turn.k2_end, prompt.chain().size());
    }
  }
}

TEST(Agents, StatisticsAreThoseOfTheTable) {
  const Trace trace = GenerateAgents({.seed = 1, .sessions = 2'000});
  double output = 0, k1_tokens = 0;
  for (const TraceTurn& turn : trace.turns) output += turn.output_tokens;
  for (const TraceSession& session : trace.sessions) {
    k1_tokens += trace.TurnsOf(session)[0].k1_end * trace.block_tokens;
  }
  const double turns = static_cast<double>(trace.turns.size());
  EXPECT_NEAR(turns / 2'000, MeanOf(agents::kTurns), 4);
  EXPECT_NEAR(output / turns, MeanOf(agents::kOutputTokens), 10);
  EXPECT_NEAR(k1_tokens / 2'000, MeanOf(agents::kStaticTokens), 500);
}

// What the recorded sessions and the generated ones have in common, where the files are.
TEST(Agents, GeneratedSessionsAreLikeRecordedOnes) {
  const auto recorded = PublicTrace("claude-code/agentic_sessions_delta.jsonl.gz");
  if (!recorded) GTEST_SKIP() << "HIDANE_TRACES is not set";
  const TraceStats real = StatsOf(Compact(SampleAgents(*recorded, {.sessions = 1'000})));
  EXPECT_EQ(real.sessions, 516u);
  EXPECT_EQ(real.requests, 34'187u);
  const TraceStats made = StatsOf(GenerateAgents({.sessions = 516 * 2}));
  EXPECT_NEAR(made.requests / 2.0 / real.requests, 1, 0.06);
  EXPECT_NEAR(made.input.mean / real.input.mean, 1, 0.05);
  EXPECT_NEAR(made.input.p90 / double(real.input.p90), 1, 0.05);
  EXPECT_NEAR(made.output.mean / real.output.mean, 1, 0.06);
  EXPECT_NEAR(made.k1.mean / real.k1.mean, 1, 0.05);
  EXPECT_NEAR(made.session_hit, real.session_hit, 0.005);
}

// The table's loads, on a quarter of its fleet. Not 170 %: where everybody thrashes, other seeds
// differ by more than generated and recorded sessions do.
double HitAt(const std::string& load, std::shared_ptr<const Trace> sessions) {
  const ReplayRun run = AgentsRun(std::move(sessions), *FindAgentsLoad(load), kAgentsReplicas / 4);
  return SimulateReplay(run, *ReplaySetup(run), 0)->row.hit_ratio;
}

TEST(Agents, GeneratedAndRecordedSessionsGiveTheSameTable) {
  const auto recorded = PublicTrace("claude-code/agentic_sessions_delta.jsonl.gz");
  if (!recorded) GTEST_SKIP() << "HIDANE_TRACES is not set";
  const auto real = std::make_shared<const Trace>(Compact(SampleAgents(*recorded, {})));
  const auto made = std::make_shared<const Trace>(GenerateAgents({}));
  for (const std::string load : {"40", "85"}) {
    EXPECT_NEAR(HitAt(load, made), HitAt(load, real), 0.02) << load;
  }
}

}  // namespace
}  // namespace hidane::sim
