#include "sim/trace_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>

namespace hidane::sim {
namespace {

uint32_t At(const std::vector<uint32_t>& sorted, double p) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(p * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

Spread SpreadOf(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const uint32_t v : values) sum += v;
  return {sum / static_cast<double>(std::max<size_t>(values.size(), 1)), At(values, 0.5),
          At(values, 0.9), At(values, 0.99), At(values, 1)};
}

/// Prompts in the order of their arrival, with what came before.
class Cache {
 public:
  /// Tokens of the leading blocks that were held, `kept` of which are known to be.
  uint32_t Look(const PromptBuilder& prompt, size_t kept) {
    const auto& chain = prompt.chain();
    size_t hit = kept;
    while (hit < chain.size() && held_.contains(chain[hit])) ++hit;
    for (size_t i = hit; i < chain.size(); ++i) held_.insert(chain[i]);
    return hit == 0 ? 0 : prompt.ends()[hit - 1];
  }
  size_t size() const { return held_.size(); }

 private:
  boost::unordered_flat_set<uint64_t> held_;
};

/// Leading blocks that two chains have in common.
size_t Common(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

/// (time, session, turn) of all turns, by time; sessions without times one after the other.
struct Slot {
  Duration at;
  uint32_t session, turn;
};
std::vector<Slot> InOrder(const Trace& trace) {
  std::vector<Slot> slots;
  for (uint32_t s = 0; s < trace.sessions.size(); ++s) {
    for (uint32_t t = 0; t < trace.sessions[s].turns; ++t) {
      slots.push_back({trace.TurnsOf(trace.sessions[s])[t].at, s, t});
    }
  }
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.at < b.at; });
  return slots;
}

std::string Line(const Spread& s) {
  return fmt::format("mean {:.0f}  p50 {}  p90 {}  p99 {}  max {}", s.mean, s.p50, s.p90, s.p99,
                     s.max);
}

}  // namespace

TraceStats StatsOf(const Trace& trace) {
  TraceStats stats;
  std::vector<uint32_t> inputs, outputs, k1s;
  boost::unordered_flat_set<uint64_t> k1_seen;
  std::vector<PromptBuilder> prompts(trace.sessions.size());
  Cache cache;
  double tokens = 0, hit = 0, session_hit = 0;
  for (const Slot& slot : InOrder(trace)) {
    const TraceSession& session = trace.sessions[slot.session];
    const TraceTurn& turn = trace.TurnsOf(session)[slot.turn];
    PromptBuilder& prompt = prompts[slot.session];
    const std::vector<uint64_t> before = prompt.chain();
    prompt.Apply(trace, turn);
    const size_t kept = Common(before, prompt.chain());
    tokens += turn.input_tokens;
    hit += cache.Look(prompt, kept);
    session_hit += kept == 0 ? 0 : prompt.ends()[kept - 1];
    inputs.push_back(turn.input_tokens);
    outputs.push_back(turn.output_tokens);
    k1s.push_back(turn.k1_end == 0 ? 0 : prompt.ends()[turn.k1_end - 1]);
    k1_seen.insert(turn.k1_end == 0 ? 0 : prompt.chain()[turn.k1_end - 1]);
    stats.duration_s = std::max(stats.duration_s, Seconds(turn.at));
    if (slot.turn + 1 == session.turns) prompt = PromptBuilder();  // its memory
  }
  stats.requests = trace.turns.size();
  stats.sessions = static_cast<uint64_t>(std::count_if(trace.sessions.begin(), trace.sessions.end(),
                                                       [](auto& s) { return !s.subagent; }));
  stats.input = SpreadOf(std::move(inputs));
  stats.output = SpreadOf(std::move(outputs));
  stats.k1 = SpreadOf(std::move(k1s));
  stats.ideal_hit = hit / std::max(tokens, 1.0);
  stats.session_hit = session_hit / std::max(tokens, 1.0);
  stats.distinct_blocks = cache.size();
  stats.distinct_k1 = k1_seen.size();
  return stats;
}

std::string Describe(const Trace& trace) {
  const TraceStats s = StatsOf(trace);
  std::string out = fmt::format("format          {}, blocks of {} tokens\n", NameOf(trace.format),
                                trace.block_tokens);
  out += fmt::format("requests        {} in {} sessions\n", s.requests, s.sessions);
  if (trace.timed) {
    out += fmt::format("duration        {:.0f} s ({:.2f} requests/s)\n", s.duration_s,
                       static_cast<double>(s.requests) / std::max(s.duration_s, 1e-9));
  }
  out += fmt::format("input tokens    {}\noutput tokens   {}\n", Line(s.input), Line(s.output));
  out += fmt::format("static prefix   {} distinct, tokens {}\n", s.distinct_k1, Line(s.k1));
  out += fmt::format("distinct blocks {}\n", s.distinct_blocks);
  out += fmt::format("ideal hit ratio {:.1f} % with one infinite cache, {:.1f} % within sessions\n",
                     100 * s.ideal_hit, 100 * s.session_hit);
  return out;
}

}  // namespace hidane::sim
