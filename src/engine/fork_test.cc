#include "engine/fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/engine_harness.h"
#include "engine/fake_bench.h"
#include "engine/policy_params.h"

/// Several choices of a request, in the whole engine, over a model whose every token depends on
/// which tokens it has, and in which order their slots lie.
namespace hidane::engine {
namespace {

Request Drawn(size_t prompt_tokens, uint32_t choices, const std::string& policy = "none") {
  Rng rng(prompt_tokens);
  Request request;
  for (size_t i = 0; i < prompt_tokens; ++i)
    request.prompt.push_back(static_cast<TokenId>(1 + rng.Below(kBenchVocab - 1)));
  request.max_tokens = 50;
  request.ignore_eos = true;
  request.sampling = {.seed = prompt_tokens, .has_seed = true};
  request.kv_policy = KvPolicy{policy, policy == "none" ? 0u : 40u, 1, 0};
  request.choices = choices;
  return request;
}

/// Prompts that fill their last block and that don't, shorter than the budget and longer.
std::vector<Request> Six(const std::string& policy) {
  std::vector<Request> requests;
  for (const size_t n : {30u, 40u, 41u, 64u, 90u, 103u}) requests.push_back(Drawn(n, 4, policy));
  return requests;
}

std::vector<std::vector<TokenId>> TokensOf(const std::vector<Answer>& answers) {
  std::vector<std::vector<TokenId>> tokens;
  for (const Answer& answer : answers) tokens.push_back(answer.tokens);
  return tokens;
}

/// What the choices of a request are, each run as a request of its own.
std::vector<std::vector<TokenId>> OneByOne(Engine& engine, Request request) {
  std::vector<std::vector<TokenId>> tokens;
  const uint64_t seed = request.sampling.seed;
  const uint32_t choices = std::exchange(request.choices, 1);
  for (uint32_t choice = 0; choice < choices; ++choice) {
    request.sampling.seed = ChoiceSeed(seed, choice);
    tokens.push_back(RunAll(engine, {request}).at(0).tokens);
  }
  return tokens;
}

class Forks : public testing::TestWithParam<std::string> {};

TEST_P(Forks, EachChoiceIsWhatARequestWithItsSeedAnswers) {
  const auto requests = Six(GetParam());
  std::vector<std::vector<std::vector<TokenId>>> want;
  {
    FakeBench bench({.prefix_cache = false});
    for (const Request& request : requests) want.push_back(OneByOne(*bench, request));
  }
  for (const BenchOptions& shape :
       {BenchOptions{}, BenchOptions{.prefix_cache = false}, BenchOptions{.chunk = 16, .seqs = 6},
        BenchOptions{.chunk = 64, .kv_blocks = 60, .hold = 6},
        BenchOptions{.chunk = 64, .kv_blocks = 60, .prefix_cache = false, .hold = 6}}) {
    FakeBench bench(shape);
    const auto got = RunChoices(*bench, requests);
    for (size_t i = 0; i < requests.size(); ++i)
      EXPECT_EQ(TokensOf(got.at(i)), want[i]) << "request " << i << " in " << shape.kv_blocks;
    EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, shape.kv_blocks);
    if (shape.kv_blocks == 60) {
      EXPECT_GT(
          bench.Count("vllm:num_preemptions_total") + bench.Count("hidane_engine_kv_saved_total"),
          0u);
    }
  }
}

/// None too, but not random, whose victims are drawn from the request's seed.
std::vector<std::string> PoliciesWithoutChance() {
  std::vector<std::string> names = EveryPolicy();
  std::erase(names, "random");
  names.emplace_back("none");
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Forks, testing::ValuesIn(PoliciesWithoutChance()), PolicyTestName);

// With memory for all, for they win it back when others need it.
TEST(Fork, DeadSlotsThatStayAreForkedToo) {
  for (const auto mode : {vtoken::Mode::kMasked, vtoken::Mode::kLazy}) {
    for (Request request : Six("h2o")) {
      request.kv_policy->mode = mode;
      FakeBench bench({});
      const auto got = TokensOf(RunChoices(*bench, {request}).at(0));
      EXPECT_EQ(got, OneByOne(*bench, request));
      EXPECT_GT(bench.Count("hidane_engine_kv_evicted_total"), 0u);
      EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 1024u);
    }
  }
}

TEST(Fork, SeededChoicesDifferAndComeAgain) {
  FakeBench bench({});
  const auto first = TokensOf(RunChoices(*bench, {Drawn(30, 8)}).at(0));
  for (size_t i = 0; i < 8; ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(first[i], first[j]);
  EXPECT_EQ(TokensOf(RunChoices(*bench, {Drawn(30, 8)}).at(0)), first);
}

TEST(Fork, GreedyChoicesAreEqual) {
  for (const char* policy : {"none", "random", "h2o"}) {
    FakeBench bench({});
    Request request = Drawn(50, 5, policy);
    request.sampling.temperature = 0;
    const auto tokens = TokensOf(RunChoices(*bench, {request}).at(0));
    EXPECT_THAT(tokens, testing::Each(tokens[0])) << policy;
  }
}

TEST(Fork, ThePromptIsComputedAndCountedOnce) {
  for (const char* policy : {"none", "keydiff"}) {
    FakeBench bench({});
    for (const uint32_t cached : {0u, 48u}) {
      const auto answers = RunChoices(*bench, {Drawn(50, 5, policy)}).at(0);
      if (policy == std::string("none")) {
        EXPECT_EQ(answers[0].events[0].cached_tokens, cached);
      }
      for (const Answer& answer : answers) {
        EXPECT_EQ(answer.events.back().prompt_tokens, 50u);
        EXPECT_EQ(answer.events.back().completion_tokens, 50u);
        EXPECT_EQ(answer.events.back().cached_tokens, answers[0].events[0].cached_tokens);
      }
    }
    WaitUntilIdle(*bench);
    const uint64_t hits = bench.Count("vllm:prefix_cache_hits_total");
    EXPECT_EQ(bench.Count("vllm:prefix_cache_queries_total"), 100u);
    EXPECT_EQ(bench.Count("hidane_engine_prefill_tokens_total"), 100u - hits);
    EXPECT_EQ(bench.Count("vllm:prompt_tokens_total"), 100u);
    EXPECT_EQ(bench.Count("vllm:generation_tokens_total"), 500u);
  }
}

TEST(Fork, ChoicesShareThePromptsBlocks) {
  FakeBench bench({});
  Collector collector;
  std::promise<KvMap> promised;
  Request request = Drawn(50, 5);  // twelve full blocks, and two tokens
  ASSERT_TRUE(bench->Submit(request, [&](const Event& event) {
    collector.SinkFor(event.choice)(event);
    if (event.choice == 0 && event.completion_tokens == 1)
      bench->ReadKv([&](KvMap map) { promised.set_value(std::move(map)); });
  }));
  const KvMap map = promised.get_future().get();
  for (size_t i = 0; i < 5; ++i) collector.WaitFor(i);
  EXPECT_EQ(map.blocks - map.blocks_free, 12u + 5u);
  ASSERT_EQ(map.sequences.size(), 5u);
  for (const KvSequence& seq : map.sequences) EXPECT_EQ(seq.blocks, 13u);
}

TEST(Fork, APreemptedChoiceComputesItsOwnTokensAgain) {
  FakeBench bench({.kv_blocks = 44});  // the prompt's 20 and 24 for four answers of 13 each
  Request request = Drawn(80, 4);
  request.max_tokens = 52;
  const auto answers = RunChoices(*bench, {request}).at(0);
  for (const Answer& answer : answers) EXPECT_EQ(answer.tokens.size(), 52u);
  EXPECT_GT(bench.Count("vllm:num_preemptions_total"), 0u);
  EXPECT_LT(bench.Count("hidane_engine_prefill_tokens_total"), 80u + 4 * 52);
  EXPECT_EQ(bench.Count("vllm:prefix_cache_queries_total"), 80u);
  EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 44u);
}

TEST(Fork, ACancelEndsAllChoicesAndFreesTheirBlocks) {
  for (const char* policy : {"none", "h2o"}) {
    for (const uint32_t after : {0u, 1u, 20u}) {
      FakeBench bench({.seqs = 3, .kv_blocks = 100});
      Collector collector;
      std::promise<SeqId> promised;
      std::promise<void> cancelled;
      auto known = promised.get_future().share();
      const auto sent = cancelled.get_future().share();
      Request request = Drawn(90, 3, policy);
      const auto id = bench->Submit(request, [&, known](const Event& event) {
        collector.SinkFor(event.choice)(event);
        if (after == 0) sent.wait();  // else a fast engine is done before a slow thread cancels
        if (event.choice == 1 && event.completion_tokens == after) bench->Cancel(known.get());
      });
      ASSERT_TRUE(id);
      promised.set_value(*id);
      if (after == 0) bench->Cancel(*id);
      cancelled.set_value();
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(collector.WaitFor(i).finish(), Finish::kCancelled);
      EXPECT_EQ(WaitUntilIdle(*bench).kv_blocks_free, 100u);
      EXPECT_EQ(collector.events_after_end(), 0);
    }
  }
}

TEST(Fork, OneChoiceCanBeCancelledAlone) {
  FakeBench bench({});
  Collector collector;
  std::promise<SeqId> promised;
  auto known = promised.get_future().share();
  const auto id = bench->Submit(Drawn(30, 3), [&, known](const Event& event) {
    collector.SinkFor(event.choice)(event);
    if (event.choice != 1 && event.completion_tokens == 5)
      bench->CancelChoice(known.get(), event.choice);
  });
  ASSERT_TRUE(id);
  promised.set_value(*id);
  EXPECT_EQ(collector.WaitFor(0).finish(), Finish::kCancelled);
  EXPECT_EQ(collector.WaitFor(1).finish(), Finish::kLength);
  EXPECT_EQ(collector.WaitFor(2).finish(), Finish::kCancelled);
}

TEST(Fork, AChoiceThatEndsAtItsFirstTokenLeavesTheOthersAlone) {
  FakeBench bench({});
  Request request = Drawn(30, 6);
  const auto all = TokensOf(RunChoices(*bench, {request}).at(0));
  request.stop_token_ids = {all[0][0]};
  const auto answers = RunChoices(*bench, {request}).at(0);
  EXPECT_EQ(answers[0].tokens.size(), 1u);
  EXPECT_EQ(answers[0].finish(), Finish::kStop);
  for (size_t i = 1; i < 6; ++i)
    EXPECT_TRUE(std::equal(answers[i].tokens.begin(), answers[i].tokens.end(), all[i].begin()));
}

TEST(Fork, MoreChoicesThanRunAtOnceAreRefused) {
  FakeBench bench({.chunk = 16, .seqs = 20});
  for (const uint32_t n : {0u, 17u}) {
    const auto id = bench->Submit(Drawn(5, n), [](const Event&) { FAIL(); });
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().param, "n");
    EXPECT_THAT(id.error().what, testing::HasSubstr("n " + std::to_string(n) + " "));
  }
  EXPECT_EQ(RunChoices(*bench, {Drawn(5, 16)}).at(0).size(), 16u);
}

TEST(Fork, WhatAPolicyLetsStayBoundsTheAnswer) {
  FakeBench bench({.kv_blocks = 30});  // 120 tokens, in a context of 4,096
  const auto most = [&](uint64_t prompt, const KvPolicy& policy) {
    return bench->MaxTokens(prompt, policy);
  };
  EXPECT_EQ(most(50, {}), 71u);
  EXPECT_EQ(bench->MaxTokens(50, std::nullopt), 71u);
  EXPECT_EQ(most(50, {"h2o", 64, 1, 0}), 4046u);
  EXPECT_EQ(most(50, {"h2o", 110, 1, 0}), 71u) << "it is cut to 110 when it has 126";
  EXPECT_EQ(most(50, {"snapkv", 40, 1, 0}), 81u) << "once, to 40";
  EXPECT_EQ(most(120, {}), 1u);
  EXPECT_EQ(most(121, {"h2o", 64, 1, 0}), 0u);
  EXPECT_EQ(most(50, {"h3o", 64, 1, 0}), 0u);
  Request request = Drawn(50, 1);
  for (const KvPolicy& policy :
       {KvPolicy{}, KvPolicy{"h2o", 110, 1, 0}, KvPolicy{"r-kv", 0, 0.5, 0}}) {
    request.kv_policy = policy;
    request.max_tokens = most(50, policy);
    EXPECT_EQ(RunAll(*bench, {request}).at(0).finish(), Finish::kLength);
    ++request.max_tokens;
    EXPECT_FALSE(bench->Submit(request, [](const Event&) { FAIL(); })) << policy.name;
  }
}

}  // namespace
}  // namespace hidane::engine
