#include "engine/engine_loop.h"

#include <algorithm>
#include <utility>

#include "engine/fork.h"
#include "engine/kv_describe.h"

namespace hidane::engine {
namespace {

sched::SchedulerOptions SchedulerOptionsOf(const model::Model& model, const EngineOptions& o) {
  return {.kv_blocks = model.kv_blocks(),
          .block_size = model.kv_layout().block_size,
          .tokens_max = o.max_num_batched_tokens,
          .seqs_max = o.max_num_seqs};
}

}  // namespace

EngineLoop::EngineLoop(std::unique_ptr<model::Model> model, const text::TextModel& text,
                       const EngineOptions& options, Mailbox& mailbox, Probe& probe)
    : model_(std::move(model)),
      text_(text),
      options_(options),
      mailbox_(mailbox),
      probe_(probe),
      scheduler_(SchedulerOptionsOf(*model_, options)),
      evictor_(*model_, scheduler_, *options.clock) {}

void EngineLoop::Run() {
  std::vector<Command> inbox;
  while (mailbox_.Take(!live_.empty(), inbox)) {
    const TimePoint start = options_.busy_clock->Now();
    for (Command& command : inbox) std::visit([&](auto& c) { Do(c); }, command);
    const sched::StepTally tally = Step();
    probe_.OnStep(tally, options_.busy_clock->Now() - start);
  }
  for (Command& command : inbox) std::visit([&](auto& c) { Do(c); }, command);
  CancelAll();
  Publish();
}

void EngineLoop::Do(SubmitCommand& command) {
  Request& request = command.request;
  std::vector<Sha256Digest> chain;
  if (options_.prefix_cache) {
    chain = digester_.Chain(request.prompt, model_->kv_layout().block_size, request.cache_salt);
  }
  const SamplingParams& sampling = request.sampling;
  const auto prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  const KvPolicy& policy = request.kv_policy ? *request.kv_policy : options_.kv_policy;
  std::optional<sched::Evictable> evictable;
  if (policy.evicts()) {
    evictable = evictor_.Add(command.id, policy, prompt_tokens, sampling.seed);
  }
  scheduler_.Add(command.id, prompt_tokens, std::move(chain), evictable);
  const uint64_t seed =
      sampling.has_seed ? sampling.seed : Mix64(options_.seed + command.id.value());
  std::vector<TokenId> tokens = std::move(request.prompt);
  const uint32_t unforked = request.choices - 1;
  live_.try_emplace(command.id,
                    Live{std::make_shared<const Request>(std::move(request)), std::move(tokens),
                         std::make_shared<const Sink>(std::move(command.sink)), seed, Rng(seed),
                         command.submitted, unforked});
}

void EngineLoop::Do(CancelCommand& command) {
  const SeqId first(command.id.value() + command.choice.value_or(0));
  for (auto at = live_.lower_bound(first); at != live_.end();) {
    const auto& [id, live] = *at++;
    const bool asked = command.choice ? id == first : id.value() - live.choice == first.value();
    if (!asked) return;
    Event event = EventOf(id, live);
    event.finish = Finish::kCancelled;
    End(id, std::move(event));
  }
}

void EngineLoop::Do(ResetCommand&) {
  scheduler_.ResetPrefixCache();
}

void EngineLoop::Do(ReadKvCommand& command) {
  evictor_.Join();
  const sched::KvCache& cache = scheduler_.cache();
  KvMap map{.block_size = model_->kv_layout().block_size,
            .blocks = cache.blocks(),
            .blocks_free = cache.blocks_free(),
            .blocks_published = cache.blocks_published()};
  for (const auto& [id, live] : live_) {
    map.sequences.push_back(DescribeKv(scheduler_.state(id), evictor_.Find(id), map.block_size));
  }
  command.done(std::move(map));
}

sched::StepTally EngineLoop::Step() {
  evictor_.Join();
  const sched::StepPlan plan = evictor_.Plan();
  evictor_.Save(plan.preempt);
  scheduler_.Commit(plan);
  evictor_.Restore(plan.admit);
  CountAdmissions(plan);
  Publish();  // before the long part
  if (plan.run.empty()) return {};
  Compute(plan);
  const sched::StepTally tally = scheduler_.Complete(plan);
  evictor_.Run(plan);
  const size_t vocab = model_->info().vocab_size;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto row = std::span(logits_).subspan(i * vocab, vocab);
    const uint32_t choices = BeginChoices(rows_[i]);
    for (uint32_t c = 0; c < choices; ++c) Deliver(SeqId(rows_[i].value() + c), row);
  }
  Publish();
  return tally;
}

void EngineLoop::CountAdmissions(const sched::StepPlan& plan) {
  probe_.OnPreempted(scheduler_.preemptions());
  for (const SeqId id : plan.admit) {
    const sched::SeqState& seq = scheduler_.state(id);
    if (seq.admissions == 1) probe_.OnFirstAdmission(seq.prompt_tokens, seq.cached_tokens);
  }
}

void EngineLoop::Compute(const sched::StepPlan& plan) {
  tokens_.clear();
  slices_.clear();
  rows_.clear();
  for (const sched::StepPlan::Item& item : plan.run) {
    const sched::SeqState& seq = scheduler_.state(item.id);
    const auto first = live_.at(item.id).tokens.begin() + seq.computed;
    const bool want_logits = seq.computed + item.n_tokens == seq.tokens;
    tokens_.insert(tokens_.end(), first, first + item.n_tokens);
    slices_.push_back({.n_tokens = item.n_tokens,
                       .first_position = seq.computed,
                       .active_length = seq.active(),
                       .block_table = seq.table,
                       .want_logits = want_logits});
    evictor_.Ask(item.id, slices_.back());
    if (want_logits) rows_.push_back(item.id);
  }
  const size_t wanted = rows_.size() * model_->info().vocab_size;
  if (logits_.size() < wanted) logits_.resize(wanted);
  model_->Forward({.tokens = tokens_, .seqs = slices_}, std::span(logits_).first(wanted));
}

/// How many choices, this one and those behind it, draw their next token from its logits.
uint32_t EngineLoop::BeginChoices(SeqId id) {
  Live& first = live_.at(id);
  const uint32_t more = std::exchange(first.unforked, 0);
  if (more == 0) return 1;
  std::vector<SeqId> forks;
  for (uint32_t i = 1; i <= more; ++i) {
    forks.emplace_back(id.value() + i);
    Live& fork = live_.emplace(forks.back(), first).first->second;
    fork.choice = i;
    fork.rng = Rng(ChoiceSeed(first.seed, i));
  }
  Fork(*model_, scheduler_, evictor_, id, forks);
  return 1 + more;
}

void EngineLoop::Deliver(SeqId id, std::span<const float> logits) {
  Live& live = live_.at(id);
  const auto token = sampler_.Sample(logits, live.request->sampling, live.rng);
  if (!token) {
    Event event = EventOf(id, live);
    event.finish = Finish::kError;
    event.error = "the model's logits are not finite";
    return End(id, std::move(event));
  }
  const TimePoint now = options_.clock->Now();
  if (live.completion_tokens++ > 0) {
    probe_.OnNextToken(now - live.last);
  } else if (live.choice == 0) {
    probe_.OnFirstToken(scheduler_.state(id).prompt_tokens, now - live.last);
  }
  probe_.OnToken();
  live.last = now;

  Event event = EventOf(id, live);
  event.token = *token;
  if (live.request->logprobs > 0) event.top = TopLogprobs(logits, *token, live.request->logprobs);
  event.finish = FinishOf(live, *token);
  if (event.finish != Finish::kNone) return End(id, std::move(event));
  Append(id, live, *token);
  (*live.sink)(event);
}

void EngineLoop::Append(SeqId id, Live& live, TokenId token) {
  live.tokens.push_back(token);
  const uint32_t block_size = model_->kv_layout().block_size;
  const bool named = options_.prefix_cache && !scheduler_.state(id).evictable;
  if (!named || live.tokens.size() % block_size != 0) return scheduler_.Append(id);
  scheduler_.Append(
      id, digester_.Next(scheduler_.state(id).chain, std::span(live.tokens).last(block_size),
                         live.request->cache_salt));
}

Finish EngineLoop::FinishOf(const Live& live, TokenId token) const {
  const Request& request = *live.request;
  const auto& stops = request.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return Finish::kStop;
  if (!request.ignore_eos && text_.IsEndOfGeneration(token)) return Finish::kStop;
  return live.completion_tokens >= request.max_tokens ? Finish::kLength : Finish::kNone;
}

void EngineLoop::End(SeqId id, Event event) {
  evictor_.Remove(id);
  scheduler_.Remove(id);
  const auto at = live_.find(id);
  const Live& live = at->second;
  for (uint32_t i = 0; i <= live.unforked; ++i, ++event.choice) {  // those end before they begin
    probe_.OnFinish(event.finish);
    (*live.sink)(event);
  }
  live_.erase(at);
}

void EngineLoop::CancelAll() {
  while (!live_.empty()) {
    const auto& [id, live] = *live_.begin();
    CancelCommand command{SeqId(id.value() - live.choice), std::nullopt};
    Do(command);
  }
}

Event EngineLoop::EventOf(SeqId id, const Live& live) const {
  const sched::SeqState& seq = scheduler_.state(id);
  Event event;
  event.choice = live.choice;
  event.prompt_tokens = seq.prompt_tokens;
  event.cached_tokens = seq.cached_tokens;
  event.completion_tokens = live.completion_tokens;
  return event;
}

void EngineLoop::Publish() {
  const uint32_t blocks = scheduler_.cache().blocks();
  const uint32_t free = scheduler_.cache().blocks_free();
  const EngineStats stats{.running = scheduler_.running(),
                          .waiting = scheduler_.waiting(),
                          .kv_blocks = blocks,
                          .kv_blocks_free = free,
                          .block_size = model_->kv_layout().block_size,
                          .kv_usage = static_cast<double>(blocks - free) / blocks};
  mailbox_.Publish(stats);
  probe_.OnStats(stats);
  probe_.OnEviction(evictor_.stats());
}

}  // namespace hidane::engine
