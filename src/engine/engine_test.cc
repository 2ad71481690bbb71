#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "base/rng.h"
#include "engine/engine_harness.h"
#include "engine/fakes.h"
#include "engine/sampler.h"

namespace hidane::engine {
namespace {

constexpr uint32_t kVocab = 64;

// What a request must answer, computed without an engine: no memory, no batch, no cache.
std::vector<TokenId> Expected(const Request& request) {
  std::vector<TokenId> context = request.prompt, answer;
  Rng rng(request.sampling.seed);
  Sampler sampler;
  while (answer.size() < request.max_tokens) {
    const auto logits = FakeModel::LogitsAfter(context, kVocab);
    answer.push_back(*sampler.Sample(logits, request.sampling, rng));
    context.push_back(answer.back());
    if (answer.back() == 0 && !request.ignore_eos) break;
  }
  return answer;
}

Request Greedy(std::vector<TokenId> prompt, uint32_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

std::vector<TokenId> Prompt(Rng& rng, size_t n) {
  std::vector<TokenId> prompt(n);
  for (TokenId& token : prompt) token = static_cast<TokenId>(1 + rng.Below(kVocab - 1));
  return prompt;
}

// Tenants with static prefixes of their own, as Hidane's users send them; half greedy, half drawn.
std::vector<Request> Mix(size_t n, uint64_t seed, size_t static_tokens = 150) {
  Rng rng(seed);
  const std::vector<std::vector<TokenId>> statics = {Prompt(rng, static_tokens),
                                                     Prompt(rng, static_tokens / 2)};
  std::vector<Request> requests;
  for (size_t i = 0; i < n; ++i) {
    auto prompt = statics[i % 2];
    for (const TokenId token : Prompt(rng, rng.Below(20))) prompt.push_back(token);
    Request request = Greedy(std::move(prompt), static_cast<uint32_t>(1 + rng.Below(40)));
    if (i % 4 > 1) request.sampling = {.temperature = 0.8f, .seed = i, .has_seed = true};
    requests.push_back(std::move(request));
  }
  return requests;
}

struct Setup {
  EngineOptions options = {};
  FakeModelOptions model = {};
};

// An engine on the fake model, with what must outlive it.
class Bench {
 public:
  explicit Bench(Setup setup = {})
      : text_(kVocab),
        engine_(Engine::Create(std::make_unique<FakeModel>(std::move(setup.model)), text_,
                               setup.options, registry_)) {}
  Engine& engine() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  void Stop() { engine_.reset(); }
  uint64_t Count(const char* name) {
    return registry_.counter(name, "", {{"model_name", "fake"}}).value();
  }
  double Seconds(const char* name) {
    return registry_.real_counter(name, "", {{"model_name", "fake"}}).value();
  }
  std::string Scrape() { return registry_.Scrape(); }

 private:
  FakeText text_;
  obs::Registry registry_;
  std::unique_ptr<Engine> engine_;
};

void ExpectAnswers(Engine& engine, const std::vector<Request>& requests) {
  const auto answers = RunAll(engine, requests);
  ASSERT_EQ(answers.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(answers[i].tokens, Expected(requests[i])) << "request " << i;
  }
}

// --- The same output, whatever else happens -------------------------------------------------

TEST(EngineInvarianceTest, AloneColdAndWarm) {
  Bench bench;
  for (const Request& request : Mix(6, 1)) {
    ExpectAnswers(bench.engine(), {request});
    ExpectAnswers(bench.engine(), {request});
  }
  EXPECT_GT(bench.Count("vllm:prefix_cache_hits_total"), 0u);
}

TEST(EngineInvarianceTest, InABatchOfSixteenWithAnyChunk) {
  for (const uint32_t chunk : {1u, 64u, 2048u}) {
    Bench bench({.options = {.max_num_batched_tokens = chunk, .max_num_seqs = 16}});
    ExpectAnswers(bench.engine(), Mix(16, 2));
    ExpectAnswers(bench.engine(), Mix(16, 2));
  }
}

TEST(EngineInvarianceTest, WithoutAPrefixCache) {
  Bench bench({.options = {.prefix_cache = false}});
  ExpectAnswers(bench.engine(), Mix(16, 3));
  EXPECT_EQ(bench.Count("vllm:prefix_cache_hits_total"), 0u);
}

TEST(EngineInvarianceTest, WhenKvMemoryForcesPreemption) {
  Bench bench({.options = {.max_num_batched_tokens = 64}, .model = {.kv_blocks = 16}});
  const auto requests = Mix(48, 4);
  ExpectAnswers(bench.engine(), requests);
  EXPECT_GT(bench.Count("vllm:num_preemptions_total"), 0u);
  uint64_t prompt_tokens = 0;  // looked up once each, however often they were preempted
  for (const Request& request : requests) prompt_tokens += request.prompt.size();
  EXPECT_EQ(bench.Count("vllm:prefix_cache_queries_total"), prompt_tokens);
  EXPECT_EQ(WaitUntilIdle(bench.engine()).kv_blocks_free, 16u);
}

TEST(EngineInvarianceTest, AnotherSaltIsAnotherCache) {
  Bench bench;
  Request request = Mix(1, 5)[0];
  ExpectAnswers(bench.engine(), {request});
  request.cache_salt = "tenant";
  EXPECT_EQ(RunAll(bench.engine(), {request})[0].events.back().cached_tokens, 0u);
}

// --- Events ---------------------------------------------------------------------------------

// Field bug: a chunk held the whole answer so far instead of its own token.
TEST(EngineEventsTest, EachEventCarriesOneTokenAndTheTotalsCountThem) {
  Bench bench;
  const auto requests = Mix(64, 6);
  const auto answers = RunAll(bench.engine(), requests);
  ASSERT_EQ(answers.size(), 64u);
  for (size_t r = 0; r < 64; ++r) {
    EXPECT_EQ(answers[r].tokens.size(), answers[r].events.size());
    for (size_t i = 0; i < answers[r].events.size(); ++i) {
      const Event& event = answers[r].events[i];
      EXPECT_EQ(event.completion_tokens, i + 1);
      EXPECT_EQ(event.prompt_tokens, requests[r].prompt.size());
      EXPECT_EQ(event.cached_tokens, answers[r].events[0].cached_tokens);
      EXPECT_EQ(event.finish != Finish::kNone, i + 1 == answers[r].events.size());
    }
  }
}

TEST(EngineEventsTest, CachedTokensAreWholeBlocksAndNeverTheLastPromptToken) {
  Bench bench;
  Rng rng(7);
  const Request request = Greedy(Prompt(rng, 64), 1);
  EXPECT_EQ(RunAll(bench.engine(), {request})[0].events.back().cached_tokens, 0u);
  EXPECT_EQ(RunAll(bench.engine(), {request})[0].events.back().cached_tokens, 48u);
}

TEST(EngineEventsTest, EndsAtTheStopTokenOrAtMaxTokens) {
  Bench bench;
  Rng rng(8);
  Request request = Greedy(Prompt(rng, 10), 5);
  request.ignore_eos = true;
  const auto all = Expected(request);
  EXPECT_EQ(RunAll(bench.engine(), {request})[0].finish(), Finish::kLength);

  request.stop_token_ids = {all[2]};
  const Answer stopped = RunAll(bench.engine(), {request})[0];
  const auto end = std::find(all.begin(), all.end(), all[2]);
  EXPECT_EQ(stopped.tokens, std::vector(all.begin(), end + 1));
  EXPECT_EQ(stopped.finish(), Finish::kStop);
}

TEST(EngineEventsTest, EndsAtTheModelsOwnEndUnlessAskedNotTo) {
  Bench bench;
  Rng rng(9);
  Request request = Greedy(Prompt(rng, 4), 30);
  while (Expected(request).back() != 0) request.prompt = Prompt(rng, 4);
  EXPECT_EQ(RunAll(bench.engine(), {request})[0].finish(), Finish::kStop);
  request.ignore_eos = true;
  const Answer whole = RunAll(bench.engine(), {request})[0];
  EXPECT_EQ(whole.tokens.size(), 30u);
  EXPECT_EQ(whole.finish(), Finish::kLength);
}

TEST(EngineEventsTest, LogprobsBringTheChosenTokenAndTheHighest) {
  Bench bench;
  Rng rng(10);
  Request request = Greedy(Prompt(rng, 10), 3);
  request.logprobs = 4;
  const Answer answer = RunAll(bench.engine(), {request})[0];
  for (const Event& event : answer.events) {
    ASSERT_EQ(event.top.size(), 5u);
    EXPECT_EQ(event.top[0].id, event.token);
    EXPECT_EQ(event.top[1].id, event.token);  // greedy: the highest is the chosen one
    EXPECT_LE(event.top[4].logprob, event.top[1].logprob);
  }
}

// --- Bad requests ---------------------------------------------------------------------------

TEST(EngineSubmitTest, NamesTheFieldThatIsOutOfRange) {
  Bench bench({.model = {.context_length = 100, .kv_blocks = 4}});
  const auto refused = [&](auto change) {
    Request request = Greedy({1, 2, 3}, 4);
    change(request);
    const auto id = bench->Submit(std::move(request), [](const Event&) { FAIL(); });
    if (id) return std::string("accepted");
    EXPECT_EQ(id.error().code, Code::kInvalidArgument);
    return id.error().param;
  };
  EXPECT_EQ(refused([](Request& r) { r.prompt.clear(); }), "prompt");
  EXPECT_EQ(refused([](Request& r) { r.prompt[1] = kVocab; }), "prompt");
  EXPECT_EQ(refused([](Request& r) { r.prompt[1] = -1; }), "prompt");
  EXPECT_EQ(refused([](Request& r) { r.max_tokens = 0; }), "max_tokens");
  EXPECT_EQ(refused([](Request& r) { r.max_tokens = UINT32_MAX; }), "max_tokens");
  EXPECT_EQ(refused([](Request& r) { r.max_tokens = 63; }), "max_tokens");  // 4 * 16 slots
  EXPECT_EQ(refused([](Request& r) { r.logprobs = 21; }), "logprobs");
  EXPECT_EQ(refused([](Request& r) { r.sampling.temperature = -1; }), "temperature");
  EXPECT_EQ(refused([](Request& r) { r.sampling.temperature = 0.0f / 0.0f; }), "temperature");
  EXPECT_EQ(refused([](Request& r) { r.sampling.top_p = 0; }), "top_p");
  EXPECT_EQ(refused([](Request& r) { r.sampling.top_k = -1; }), "top_k");
}

TEST(EngineSubmitTest, ARequestThatJustFitsRuns) {
  Bench bench({.model = {.kv_blocks = 4}});
  Request request = Greedy({1, 2, 3}, 62);
  request.ignore_eos = true;
  ExpectAnswers(bench.engine(), {request});
}

// --- Queue, cancel, end ---------------------------------------------------------------------

// Holds the model in its steps until opened.
class Gate {
 public:
  void Pass() {
    ++steps_;
    opened_.wait();
  }
  void Open() { open_.set_value(); }
  int steps() const { return steps_; }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
  std::atomic<int> steps_ = 0;
};

TEST(EngineQueueTest, RefusesWhatTheQueueDoesNotHold) {
  Gate gate;
  Collector collector;
  Bench bench({.options = {.max_num_seqs = 1, .max_queue = 3},
               .model = {.on_forward = [&](const auto&) { gate.Pass(); }}});
  ASSERT_TRUE(bench->Submit(Greedy({1}, 1), collector.SinkFor(0)));
  while (gate.steps() == 0) std::this_thread::yield();
  for (size_t i = 1; i <= 3; ++i) ASSERT_TRUE(bench->Submit(Greedy({1}, 1), collector.SinkFor(i)));
  EXPECT_EQ(bench->stats().waiting, 3u);
  const auto refused = bench->Submit(Greedy({1}, 1), collector.SinkFor(4));
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  gate.Open();
  for (size_t i = 0; i <= 3; ++i) EXPECT_TRUE(collector.WaitFor(i).done);
}

// Field bug: a queue ran the requests of clients that had gone.
TEST(EngineQueueTest, ACancelledRequestInTheQueueIsNeverComputed) {
  Gate gate;
  Collector collector;
  std::vector<TokenId> computed;
  Bench bench({.options = {.max_num_seqs = 1},
               .model = {.on_forward = [&](const model::StepBatch& batch) {
                 gate.Pass();
                 computed.insert(computed.end(), batch.tokens.begin(), batch.tokens.end());
               }}});
  ASSERT_TRUE(bench->Submit(Greedy({1}, 1), collector.SinkFor(0)));
  while (gate.steps() == 0) std::this_thread::yield();
  for (TokenId i = 1; i <= 20; ++i) {
    const auto id = bench->Submit(Greedy({i + 1}, 1), collector.SinkFor(static_cast<size_t>(i)));
    ASSERT_TRUE(id);
    bench->Cancel(*id);
    bench->Cancel(*id);
  }
  ASSERT_TRUE(bench->Submit(Greedy({50}, 1), collector.SinkFor(21)));
  gate.Open();
  EXPECT_EQ(collector.WaitFor(21).finish(), Finish::kLength);
  for (size_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(collector.WaitFor(i).finish(), Finish::kCancelled);
    EXPECT_EQ(collector.WaitFor(i).events.size(), 1u);
  }
  bench.Stop();
  EXPECT_THAT(computed, testing::ElementsAre(1, 50));
}

// Field bug: a disconnect in mid-generation crashed the engine or lost blocks.
TEST(EngineCancelTest, FiveHundredStreamsClosedAtRandomLeaveNoTrace) {
  Collector collector;
  Bench bench(
      {.options = {.max_num_batched_tokens = 64, .max_queue = 500}, .model = {.kv_blocks = 20}});
  Rng rng(11);
  const auto requests = Mix(500, 12, 100);
  std::vector<bool> kept(500);
  for (size_t i = 0; i < 500; ++i) {
    kept[i] = rng.Below(5) == 0;
    const uint64_t close_at = kept[i] ? UINT64_MAX : rng.Below(40);
    auto id = std::make_shared<std::promise<SeqId>>();
    auto known = id->get_future().share();
    const auto got =
        bench->Submit(requests[i], collector.SinkFor(i, [&, known, close_at](const Answer& answer) {
          if (answer.tokens.size() == close_at) bench->Cancel(known.get());
        }));
    ASSERT_TRUE(got);
    id->set_value(*got);
    if (close_at == 0) bench->Cancel(*got);
  }
  for (size_t i = 0; i < 500; ++i) {
    const Answer answer = collector.WaitFor(i);
    auto expected = Expected(requests[i]);
    if (!kept[i]) {  // what came before the end is right, too
      ASSERT_LE(answer.tokens.size(), expected.size());
      expected.resize(answer.tokens.size());
    }
    EXPECT_EQ(answer.tokens, expected) << "request " << i;
  }
  EXPECT_GT(bench.Count("vllm:num_preemptions_total"), 0u);
  EXPECT_EQ(WaitUntilIdle(bench.engine()).kv_blocks_free, 20u);
  EXPECT_EQ(collector.events_after_end(), 0);
}

TEST(EngineCancelTest, TakesEffectWithinOneStep) {
  Collector collector;
  std::atomic<int> steps = 0, steps_at_cancel = -1;
  std::atomic<uint64_t> id = 0;
  Bench* engine = nullptr;
  Bench bench({.model = {.on_forward = [&](const auto&) {
                 if (++steps == 5) {
                   while (id == 0) std::this_thread::yield();
                   steps_at_cancel = steps.load();
                   (*engine)->Cancel(SeqId(id));
                 }
               }}});
  engine = &bench;
  Request request = Greedy({1}, 1000);
  request.ignore_eos = true;
  id = bench->Submit(request, collector.SinkFor(0))->value();
  const Answer answer = collector.WaitFor(0);
  EXPECT_EQ(answer.finish(), Finish::kCancelled);
  EXPECT_EQ(answer.events.back().token, -1);
  EXPECT_EQ(steps, steps_at_cancel);
  EXPECT_EQ(answer.tokens.size(), 5u);
}

TEST(EngineEndTest, LiveRequestsEndAsCancelledBeforeTheEngineIsGone) {
  Collector collector;
  Bench bench({.options = {.max_num_seqs = 2}});
  Request request = Greedy({1}, 4000);
  request.ignore_eos = true;
  for (size_t i = 0; i < 5; ++i) ASSERT_TRUE(bench->Submit(request, collector.SinkFor(i)));
  bench.Stop();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(collector.WaitFor(i).finish(), Finish::kCancelled);
}

// --- Metrics --------------------------------------------------------------------------------

// A step of n tokens takes n seconds, so that the accounting can be read off.
struct Metered {
  ManualClock busy;
  Bench bench{{.options = {.busy_clock = &busy},
               .model = {.kv_blocks = 12, .on_forward = [this](const model::StepBatch& batch) {
                           busy.Advance(std::chrono::seconds(batch.tokens.size()));
                         }}}};
};

TEST(EngineMetricsTest, BusyTimeIsSharedOutByTokenKind) {
  Metered m;
  Request request = Greedy(std::vector<TokenId>(100, 5), 11);
  request.ignore_eos = true;
  RunAll(m.bench.engine(), {request});
  WaitUntilIdle(m.bench.engine());
  m.bench.Stop();
  EXPECT_DOUBLE_EQ(m.bench.Seconds("hidane_engine_prefill_seconds_total"), 100);
  EXPECT_DOUBLE_EQ(m.bench.Seconds("hidane_engine_decode_seconds_total"), 10);
  EXPECT_DOUBLE_EQ(m.bench.Seconds("hidane_engine_busy_seconds_total"), 110);
  EXPECT_EQ(m.bench.Count("vllm:prompt_tokens_total"), 100u);
  EXPECT_EQ(m.bench.Count("vllm:generation_tokens_total"), 11u);
}

TEST(EngineMetricsTest, RecomputeIsWhatTheEngineOnceHeldUntilAReset) {
  Metered m;
  const Request a = Greedy(std::vector<TokenId>(100, 5), 1);
  const Request b = Greedy(std::vector<TokenId>(180, 6), 1);
  RunAll(m.bench.engine(), {a});
  RunAll(m.bench.engine(), {b});  // takes all twelve blocks
  RunAll(m.bench.engine(), {a});  // its six full blocks again
  m.bench->ResetPrefixCache();
  RunAll(m.bench.engine(), {b});  // first sight, as far as the next measurement knows
  m.bench.Stop();
  EXPECT_EQ(m.bench.Count("hidane_engine_prefill_tokens_total"), 100u + 180 + 100 + 180);
  EXPECT_EQ(m.bench.Count("hidane_engine_recomputed_tokens_total"), 96u);
  EXPECT_DOUBLE_EQ(m.bench.Seconds("hidane_engine_recompute_seconds_total"), 96);
}

TEST(EngineMetricsTest, TellsTheCachesShapeInVllmsWay) {
  Bench bench;
  EXPECT_THAT(bench.Scrape(), testing::HasSubstr("vllm:cache_config_info{model_name=\"fake\","
                                                 "block_size=\"16\",num_gpu_blocks=\"256\"} 1"));
}

}  // namespace
}  // namespace hidane::engine
