#include "sim/trace_replay.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/rng.h"

namespace hidane::sim {
namespace {

prompt::Identity IdentityOf(const PromptBuilder& prompt, const TraceTurn& turn) {
  prompt::Identity identity;
  identity.root = prompt.root();
  identity.chain = prompt.chain();
  identity.ends = prompt.ends();
  identity.k1_end = turn.k1_end;
  identity.k2_end = turn.k2_end;
  identity.tokens = turn.input_tokens;
  return identity;
}

/// Adds the blocks of the answer to `request`, from the prompt that came after it. Only a prompt
/// that is longer by the whole answer and begins with all of this one goes on with it; a partial
/// last block may have become whole, another by name, with the answer's first tokens.
void AddAnswer(const PromptBuilder& next, const TraceTurn& next_turn, Request& request) {
  const auto& before = request.prompt.chain;
  const auto& chain = next.chain();
  const uint64_t end = uint64_t{request.prompt.tokens} + request.output_tokens;
  if (next_turn.input_tokens < end) return;
  const auto same = static_cast<size_t>(
      std::mismatch(before.begin(), before.end(), chain.begin(), chain.end()).first -
      before.begin());
  const bool last_grew =
      same + 1 == before.size() && same < chain.size() && next.ends()[same] > request.prompt.tokens;
  if (same < before.size() && !last_grew) return;
  for (size_t i = same; i < chain.size() && next.ends()[i] <= end; ++i) {
    request.answer_chain.push_back(chain[i]);
    request.answer_ends.push_back(next.ends()[i]);
  }
}

}  // namespace

TraceReplay::TraceReplay(std::shared_ptr<const Trace> trace, const ReplayOptions& options)
    : trace_(std::move(trace)), options_(options) {
  HIDANE_ASSERT(!trace_->sessions.empty() && options_.time_scale > 0 && options_.overlay > 0);
  for (const TraceSession& session : trace_->sessions) {
    total_ += session.turns;
    for (const TraceTurn& turn : trace_->TurnsOf(session)) duration_ = std::max(duration_, turn.at);
  }
  total_ *= options_.overlay;
  if (options_.requests > 0) total_ = std::min(total_, options_.requests);
  if (trace_->timed) {
    for (uint32_t copy = 0; copy < options_.overlay; ++copy) {
      cursors_.push({StartOf(copy, 0).at, copy, 0});
    }
    return;
  }
  Rng rng(options_.seed);
  order_.resize(trace_->sessions.size() * options_.overlay);
  for (size_t i = 0; i < order_.size(); ++i) {
    const uint64_t j = rng.Below(i + 1);  // Fisher and Yates, inside out
    order_[i] = order_[j];
    order_[j] = i;
  }
}

TimePoint TraceReplay::Scaled(Duration at) const {
  return Duration(static_cast<int64_t>(static_cast<double>(at.count()) / options_.time_scale));
}

TraceReplay::Start TraceReplay::StartOf(uint32_t copy, uint32_t n) const {
  const Duration offset = duration_ / options_.overlay * copy;
  const auto first_at = [&](const TraceSession& session) {
    return trace_->turns[session.first_turn].at;
  };
  const auto& sessions = trace_->sessions;
  const auto begin = std::partition_point(sessions.begin(), sessions.end(),
                                          [&](const auto& s) { return first_at(s) < offset; });
  uint64_t session = static_cast<uint64_t>(begin - sessions.begin()) + n;
  Duration shift = -offset;
  if (session >= sessions.size()) {
    session -= sessions.size();
    shift += duration_;
  }
  return {static_cast<uint32_t>(session), shift, Scaled(first_at(sessions[session]) + shift)};
}

std::optional<Request> TraceReplay::Next() {
  if (trace_->timed) return NextTimed();
  return begun_ < options_.sessions ? Begin(TimePoint{}) : std::nullopt;
}

std::optional<Request> TraceReplay::NextTimed() {
  if (cursors_.empty() || Enough()) return std::nullopt;
  Cursor cursor = cursors_.top();
  cursors_.pop();
  const Start start = StartOf(cursor.copy, cursor.begun);
  Request request = Open(cursor.copy, start.session, start.shift, start.at);
  if (++cursor.begun < trace_->sessions.size()) {
    cursor.at = StartOf(cursor.copy, cursor.begun).at;
    cursors_.push(cursor);
  }
  return request;
}

std::optional<Request> TraceReplay::Begin(TimePoint now) {
  if (begun_ == order_.size() || Enough()) return std::nullopt;
  const uint64_t next = order_[begun_++];
  const uint64_t sessions = trace_->sessions.size();
  return Open(static_cast<uint32_t>(next / sessions), static_cast<uint32_t>(next % sessions),
              Duration{}, now);
}

Request TraceReplay::Open(uint32_t copy, uint32_t session, Duration shift, TimePoint at) {
  const TraceSession& of = trace_->sessions[session];
  const TraceTurn& first = trace_->TurnsOf(of)[0];
  Client client{
      .session = session, .shift = shift, .prompt = PromptBuilder(copy == 0 ? 0 : Mix64(copy))};
  client.prompt.Apply(*trace_, first);
  const uint64_t k2 = first.k2_end == 0 ? 0 : client.prompt.chain()[first.k2_end - 1];
  client.tenant = of.tenant != TraceSession::kNoTenant
                      ? of.tenant
                      : static_cast<uint32_t>(Mix64(options_.seed ^ k2) % options_.tenants);
  const uint64_t conversation = uint64_t{copy} * trace_->sessions.size() + session + 1;
  // Nothing follows a single request of a timed trace.
  if (trace_->timed && of.turns == 1) return Send(client, 0, at);
  return Send(clients_.emplace(conversation, std::move(client)).first->second, conversation, at);
}

Request TraceReplay::Send(Client& client, uint64_t conversation, TimePoint at) {
  const auto turns = trace_->TurnsOf(trace_->sessions[client.session]);
  const TraceTurn& turn = turns[client.turn];
  Request request;
  request.arrival = at;
  request.tenant = client.tenant;
  request.conversation = conversation;
  const double warm_up = options_.uncounted * static_cast<double>(total_);
  const bool winds_down = warm_up > 0 && !trace_->timed && begun_ == order_.size();
  request.counted = static_cast<double>(sent_++) >= warm_up && !winds_down;
  request.output_tokens = turn.output_tokens;
  request.prompt = IdentityOf(client.prompt, turn);
  if (++client.turn < turns.size()) {
    client.prompt.Apply(*trace_, turns[client.turn]);
    AddAnswer(client.prompt, turns[client.turn], request);
  }
  return request;
}

std::optional<Request> TraceReplay::After(const Finished& done, TimePoint now) {
  const uint64_t conversation = done.request.conversation;
  const auto at = clients_.find(conversation);
  if (at == clients_.end()) return std::nullopt;
  Client& client = at->second;
  const auto turns = trace_->TurnsOf(trace_->sessions[client.session]);
  if (client.turn == turns.size()) {
    clients_.erase(at);
    return trace_->timed ? std::nullopt : Begin(now);
  }
  const TraceTurn& turn = turns[client.turn];
  const TimePoint thought = now + Scaled(std::min(turn.think, options_.think_max));
  const TimePoint recorded = turn.at > Duration{} ? Scaled(turn.at + client.shift) : TimePoint{};
  return Send(client, conversation, std::max(thought, recorded));
}

}  // namespace hidane::sim
