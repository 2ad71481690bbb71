#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/engine_harness.h"
#include "engine/fake_bench.h"
#include "engine/kv_policy.h"
#include "engine/policy_params.h"

/// Eviction in the whole engine, over a model whose every token depends on which tokens it still
/// has, and in which order their slots lie.
namespace hidane::engine {
namespace {

/// Sixteen requests under one policy: half begin with the same prompt, which they say is shared.
std::vector<Request> Sixteen(const std::string& policy, uint32_t budget = 48) {
  Rng rng(5);
  const auto some = [&](size_t n) {
    std::vector<TokenId> tokens(n);
    for (TokenId& t : tokens) t = static_cast<TokenId>(1 + rng.Below(kBenchVocab - 1));
    return tokens;
  };
  const auto shared = some(80);
  std::vector<Request> requests(16);
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    if (i % 2 == 0) request.prompt = shared;
    for (const TokenId t : some(10 + 9 * i)) request.prompt.push_back(t);
    request.max_tokens = 60;
    request.ignore_eos = true;
    request.sampling = {.temperature = i % 4 < 2 ? 0.0f : 1.0f, .seed = i, .has_seed = true};
    request.kv_policy = KvPolicy{policy, budget, 1, i % 2 == 0 ? 80u : 0u};
  }
  return requests;
}

std::vector<Answer> OneByOne(Engine& engine, const std::vector<Request>& requests) {
  std::vector<Answer> answers;
  for (const Request& request : requests) answers.push_back(RunAll(engine, {request}).at(0));
  return answers;
}

void ExpectSame(const std::vector<Answer>& want, const std::vector<Answer>& got,
                const std::string& what) {
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].finish(), Finish::kLength);
    EXPECT_EQ(want[i].tokens, got[i].tokens) << "request " << i << " of " << what;
  }
}

class EvictionPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EvictionPolicy, TheSameTokensAloneInABatchChunkedColdWarmAndUnderPressure) {
  const auto requests = Sixteen(GetParam());
  FakeBench bench({.chunk = 2048, .prefix_cache = false});
  const auto alone = OneByOne(*bench, requests);
  EXPECT_GT(bench.Count("hidane_engine_kv_evicted_total"), 0u);
  EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 1024u);
  ExpectSame(alone, RunAll(*bench, requests), "a batch");

  for (const uint32_t chunk : {64u, 2048u}) {
    FakeBench cached({.chunk = chunk});
    ExpectSame(alone, RunAll(*cached, requests), "a cold cache");
    const uint64_t cold_hits = cached.Count("vllm:prefix_cache_hits_total");
    ExpectSame(alone, RunAll(*cached, requests), "a warm cache");
    ExpectSame(alone, OneByOne(*cached, requests), "a warm cache, alone");
    EXPECT_GT(cached.Count("vllm:prefix_cache_hits_total"), cold_hits);
    EXPECT_EQ(WaitUntilIdle(*cached).kv_blocks_free, 1024u);
  }

  // Older sequences grow, so that the younger ones have to leave and come back.
  std::vector<Request> crowd = Sixteen(GetParam());
  crowd.resize(6);
  for (Request& request : crowd) {
    request.kv_policy.reset();
    request.prompt.resize(10);
    request.max_tokens = 120;
  }
  crowd.insert(crowd.end(), requests.begin(), requests.end());
  FakeBench tight({.chunk = 64, .kv_blocks = 140});
  auto answers = RunAll(*tight, crowd);
  answers.erase(answers.begin(), answers.begin() + 6);
  ExpectSame(alone, answers, "tight memory");
  EXPECT_GT(tight.Count("hidane_engine_kv_saved_total"), 0u);
  EXPECT_EQ(WaitUntilIdle(*tight).kv_blocks_free, 140u);
}

INSTANTIATE_TEST_SUITE_P(All, EvictionPolicy, testing::ValuesIn(EveryPolicy()), PolicyTestName);

TEST(Eviction, WhoeverHasNoPolicyIsUnharmed) {
  auto with = Sixteen("h2o");
  std::vector<Request> mixed, without;
  for (size_t i = 0; i < with.size(); ++i) {
    if (i % 4 == 0) with[i].kv_policy.reset();
    mixed.push_back(with[i]);
  }
  FakeBench bench({});
  const auto all = RunAll(*bench, mixed);
  for (size_t i = 0; i < mixed.size(); i += 4) {
    FakeBench alone({});
    EXPECT_EQ(all[i].tokens, RunAll(*alone, {mixed[i]})[0].tokens) << i;
  }
  // The shared prompt is a hit still, for it was shared while others evicted from it.
  const auto again = RunAll(*bench, {mixed[4]})[0];
  EXPECT_EQ(again.tokens, all[4].tokens);
  EXPECT_GT(again.events.back().cached_tokens, 0u);
}

// It doesn't say that its prompt is shared, and holds the blocks alone when it evicts from them.
TEST(Eviction, WhatWasInTheCacheBeforeStaysThere) {
  Request plain = Sixteen("h2o")[4];
  plain.kv_policy.reset();
  plain.prompt.resize(90);
  for (const char* policy : {"streaming-llm", "h2o", "snapkv", "keydiff", "random"}) {
    FakeBench bench({});
    RunAll(*bench, {plain});
    Request evicts = plain;
    evicts.kv_policy = KvPolicy{policy, 48, 1, 0};
    RunAll(*bench, {evicts});
    EXPECT_GT(bench.Count("hidane_engine_kv_evicted_total"), 0u);
    EXPECT_EQ(RunAll(*bench, {plain})[0].events[0].cached_tokens, 88u) << policy;
  }
}

TEST(Eviction, MemoryFollowsTheBudget) {
  const auto requests = Sixteen("streaming-llm", 32);
  FakeBench bench({.kv_blocks = 128});  // 16 x 160 tokens and more would never fit
  uint32_t most = 0;
  Collector collector;
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(bench->Submit(requests[i], collector.SinkFor(i, [&](const Answer& answer) {
      if (answer.tokens.size() == 50) most = std::max(most, bench->stats().running);
    })));
  }
  for (size_t i = 0; i < requests.size(); ++i) collector.WaitFor(i);
  EXPECT_GT(most, 6u);  // with full K/V, 128 blocks of 4 hold three or four of them
  EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 128u);
}

TEST(Eviction, UsageCountsTheStreamNotTheSlots) {
  FakeBench bench({});
  Request request = Sixteen("h2o")[14];
  const auto first = RunAll(*bench, {request})[0].events.back();
  EXPECT_EQ(first.prompt_tokens, request.prompt.size());
  EXPECT_EQ(first.completion_tokens, 60u);
  EXPECT_EQ(first.cached_tokens, 0u);
}

TEST(Eviction, ACancelledSequenceLeavesNoBlockBehind) {
  FakeBench bench({.kv_blocks = 200});
  Collector collector;
  const auto requests = Sixteen("h2o");
  std::vector<SeqId> ids(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    ids[i] = *bench->Submit(requests[i], collector.SinkFor(i, [&, i](const Answer& answer) {
      if (answer.tokens.size() == 3 * i) bench->Cancel(SeqId(i + 1));
    }));
  }
  for (size_t i = 0; i < requests.size(); ++i) collector.WaitFor(i);
  EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 200u);
}

TEST(Eviction, BadPoliciesAreRefusedByField) {
  FakeBench bench({});
  const auto param = [&](const KvPolicy& policy) {
    Request request = Sixteen("h2o")[0];
    request.kv_policy = policy;
    const auto id = bench->Submit(request, [](const Event&) {});
    return id ? "?" : id.error().param;
  };
  EXPECT_EQ(param({"h3o", 48, 1, 0}), "kv_policy.name");
  EXPECT_EQ(param({"snapkv", 3, 1, 0}), "kv_policy.budget");
  EXPECT_EQ(param({"h2o", 0, 1, 0}), "kv_policy.budget");
  EXPECT_EQ(param({"h2o", 48, 0, 0}), "kv_policy.keep");
  EXPECT_EQ(param({"h2o", 48, 1, 1000}), "kv_policy.shared_prompt");
}

// B hits A's prompt and has to copy out of it, but no block is free: it leaves with all its K/V,
// and loses the same tokens when it comes back.
TEST(Eviction, WithoutABlockToCopyToASequenceWaitsAndLosesTheSame) {
  Request a = Sixteen("h2o")[0], b = Sixteen("h2o")[2];
  a.kv_policy.reset();
  a.max_tokens = 6;
  b.prompt.resize(88);
  std::vector<TokenId> alone;
  {
    FakeBench bench({});
    alone = RunAll(*bench, {b})[0].tokens;
  }
  FakeBench bench({.kv_blocks = 28});
  Collector collector;
  ASSERT_TRUE(bench->Submit(a, collector.SinkFor(0, [&](const Answer& answer) {
    // Its prompt is published now.
    if (answer.tokens.size() != 1) return;
    ASSERT_TRUE(bench->Submit(b, collector.SinkFor(1)));
  })));
  EXPECT_EQ(collector.WaitFor(1).tokens, alone);
  EXPECT_EQ(collector.WaitFor(1).events.back().cached_tokens, 80u);
  EXPECT_EQ(bench.Count("hidane_engine_kv_saved_total"), 1u);
  EXPECT_EQ(bench.Count("vllm:num_preemptions_total"), 1u);
  EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 28u);
}

TEST(Eviction, TheMapShowsWhoLives) {
  FakeBench bench({});
  Collector collector;
  std::promise<KvMap> promised;
  auto requests = Sixteen("streaming-llm");
  requests[1].kv_policy.reset();
  ASSERT_TRUE(bench->Submit(requests[0], collector.SinkFor(0, [&](const Answer& answer) {
    if (answer.tokens.size() != 20) return;
    ASSERT_TRUE(bench->Submit(requests[1], collector.SinkFor(1, [&](const Answer& other) {
      if (other.tokens.size() == 1)
        bench->ReadKv([&](KvMap map) { promised.set_value(std::move(map)); });
    })));
  })));
  const KvMap map = promised.get_future().get();
  for (size_t i = 0; i < 2; ++i) collector.WaitFor(i);
  ASSERT_EQ(map.sequences.size(), 2u);
  const KvSequence &with = map.sequences[0], &without = map.sequences[1];
  EXPECT_EQ(with.policy, "streaming-llm");
  EXPECT_EQ(with.prompt_tokens, 90u);
  EXPECT_GE(with.tokens, 110u);
  EXPECT_EQ(with.slots, 48u);
  EXPECT_EQ(with.blocks, 13u);   // and one for the next token
  EXPECT_EQ(with.live[0], 100);  // the sinks
  EXPECT_EQ(with.live[5], 0);
  EXPECT_EQ(with.live.back(), 100);
  EXPECT_GE(with.blocks_unmoved, 12u);
  EXPECT_EQ(without.policy, "none");
  EXPECT_EQ(without.slots, without.tokens);
  EXPECT_EQ(without.live, std::vector<uint8_t>(without.blocks, 100));
  EXPECT_EQ(map.blocks - map.blocks_free, with.blocks + without.blocks);
}

TEST(Eviction, MaskedAndLazyGiveTheirMemoryBackWhenOthersLackIt) {
  for (const vtoken::Mode mode : {vtoken::Mode::kMasked, vtoken::Mode::kLazy}) {
    auto requests = Sixteen("streaming-llm", 32);
    for (Request& request : requests) request.kv_policy->mode = mode;
    FakeBench roomy({});
    RunAll(*roomy, requests);
    EXPECT_GT(roomy.Count("hidane_engine_kv_evicted_total"), 0u);
    EXPECT_EQ(roomy.Count("hidane_engine_kv_moves_total"), 0u);
    EXPECT_EQ(WaitUntilIdle(*roomy).kv_blocks_free, 1024u);

    FakeBench tight({.kv_blocks = 128});
    for (const Answer& answer : RunAll(*tight, requests)) EXPECT_EQ(answer.tokens.size(), 60u);
    EXPECT_GT(tight.Count("hidane_engine_kv_moves_total"), 0u);
    EXPECT_EQ(WaitUntilIdle(*tight).kv_blocks_free, 128u);
  }
}

TEST(Eviction, LazyReadsEverythingWhileThereIsRoom) {
  auto lazy = Sixteen("h2o"), full = lazy, masked = lazy;
  for (size_t i = 0; i < lazy.size(); ++i) {
    lazy[i].kv_policy->mode = vtoken::Mode::kLazy;
    masked[i].kv_policy->mode = vtoken::Mode::kMasked;
    full[i].kv_policy.reset();
  }
  FakeBench bench({});
  const auto everything = RunAll(*bench, full);
  ExpectSame(everything, RunAll(*bench, lazy), "lazy");
  EXPECT_NE(RunAll(*bench, masked)[15].tokens, everything[15].tokens);
}

TEST(Eviction, ALongAnswerFitsWhereItsBudgetDoes) {
  EXPECT_EQ(SlotsNeeded({}, 100, 50), 149u);
  EXPECT_EQ(SlotsNeeded({"h2o", 48, 1, 0}, 100, 50), 100u);     // the prompt itself
  EXPECT_EQ(SlotsNeeded({"h2o", 48, 1, 0}, 10, 1000), 64u);     // 16 over the budget
  EXPECT_EQ(SlotsNeeded({"r-kv", 300, 1, 0}, 10, 1000), 428u);  // 128 over it
  EXPECT_EQ(SlotsNeeded({"snapkv", 48, 1, 0}, 100, 50), 100u);  // after the prompt: 48 + 49
  EXPECT_EQ(SlotsNeeded({"snapkv", 48, 1, 0}, 100, 100), 147u);

  FakeBench bench({.kv_blocks = 30});
  Request request = Sixteen("h2o", 64)[0];
  request.prompt.resize(50);
  request.kv_policy->shared_prompt = 0;
  request.max_tokens = 400;
  for (const vtoken::Mode mode : {vtoken::Mode::kExact, vtoken::Mode::kMasked}) {
    request.kv_policy->mode = mode;
    EXPECT_EQ(RunAll(*bench, {request})[0].tokens.size(), 400u);
  }
  request.kv_policy.reset();
  EXPECT_FALSE(bench->Submit(request, [](const Event&) {}));
}

}  // namespace
}  // namespace hidane::engine
