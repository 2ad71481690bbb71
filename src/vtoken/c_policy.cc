// The C interface: policies, shipped ones and plug-ins, over signals that the host brings.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vtoken/c_context.h"
#include "vtoken/policy.h"
#include "vtoken/select.h"

using hidane::Code;
using hidane::Fail;
using hidane::Result;
using hidane::Status;
using hidane::vtoken::CheckStruct;
using hidane::vtoken::CSequence;
using hidane::vtoken::Guards;
using hidane::vtoken::Policy;
using hidane::vtoken::PolicyTraits;
using hidane::vtoken::SequenceKv;
using hidane::vtoken::Signal;
using hidane::vtoken::TokenView;

namespace {

// The signals of one unit in logical order.
struct Gathered {
  std::vector<uint32_t> slots, positions;
  std::vector<float> column_sum, low_count, last_row, window_sum, key_norm, key_rows;
};

void GatherRows(const float* rows, const std::vector<uint32_t>& slots, uint32_t width,
                size_t first_slot, std::vector<float>& out) {
  out.clear();
  if (rows == nullptr) return;
  for (const uint32_t slot : slots) {
    const float* const row = rows + (first_slot + slot) * width;
    out.insert(out.end(), row, row + width);
  }
}

void Gather(const SequenceKv& kv, uint32_t unit, const hidane_vt_signals& s, Gathered& out) {
  out.slots.clear();
  out.positions.clear();
  for (uint32_t slot = 0; slot < kv.active_length(); ++slot) {
    if (kv.live(unit, slot)) out.slots.push_back(slot);
  }
  std::sort(out.slots.begin(), out.slots.end(),
            [&](uint32_t a, uint32_t b) { return kv.token(unit, a) < kv.token(unit, b); });
  for (const uint32_t slot : out.slots) out.positions.push_back(kv.token(unit, slot));
  const size_t first = size_t{unit} * s.slots;
  GatherRows(s.column_sum, out.slots, 1, first, out.column_sum);
  GatherRows(s.low_count, out.slots, 1, first, out.low_count);
  GatherRows(s.last_row, out.slots, 1, first, out.last_row);
  GatherRows(s.window_sum, out.slots, 1, first, out.window_sum);
  GatherRows(s.key_norm, out.slots, 1, first, out.key_norm);
  GatherRows(s.key_rows, out.slots, s.head_dim, first, out.key_rows);
}

struct Scorer {
  const hidane_vt_policy* plugin = nullptr;
  std::unique_ptr<Policy> shipped = {};
  Guards guards = {};

  Status Score(const TokenView& view, std::vector<float>& score) const {
    score.assign(view.size(), 0);
    if (shipped != nullptr) {
      shipped->Score(view, score);
      return {};
    }
    const auto data = [](std::span<const float> s) { return s.empty() ? nullptr : s.data(); };
    hidane_vt_view c;
    HIDANE_VT_INIT(c);
    c.unit = view.unit;
    c.n = static_cast<uint32_t>(view.size());
    c.logical_length = view.logical_length;
    c.head_dim = view.head_dim;
    c.seed = view.seed;
    c.positions = view.positions.data();
    c.column_sum = data(view.column_sum);
    c.low_count = data(view.low_count);
    c.last_row = data(view.last_row);
    c.window_sum = data(view.window_sum);
    c.key_norm = data(view.key_norm);
    c.key_rows = data(view.key_rows);
    const int32_t code = plugin->score(plugin->user, &c, score.data());
    if (code == 0) return {};
    return Fail(Code::kUnavailable, fmt::format("policy {} failed with {}", plugin->name, code));
  }
};

Status CheckSignals(const PolicyTraits& traits, const hidane_vt_signals& s) {
  const std::pair<Signal, const float*> arrays[] = {
      {Signal::kColumnSum, s.column_sum}, {Signal::kLowCount, s.low_count},
      {Signal::kLastRow, s.last_row},     {Signal::kWindowSum, s.window_sum},
      {Signal::kKeyNorm, s.key_norm},     {Signal::kKeyRows, s.key_rows}};
  for (const auto& [signal, array] : arrays) {
    if (traits.signals.Has(signal) && array == nullptr) {
      return Fail(Code::kInvalidArgument, "a signal that the policy needs is missing");
    }
  }
  return {};
}

Result<Scorer> ScorerOf(const hidane_vt_policy* plugin, const char* name,
                        const hidane_vt_signals& signals, uint32_t keep) {
  if (plugin != nullptr) {
    HIDANE_CHECK_OK(CheckStruct(plugin));
    if (plugin->score == nullptr || plugin->name == nullptr) {
      return Fail(Code::kInvalidArgument, "a policy without a name or a score function");
    }
    return Scorer{.plugin = plugin, .guards = {plugin->sinks, plugin->recent}};
  }
  if (name == nullptr) return Fail(Code::kInvalidArgument, "neither a policy nor a name");
  HIDANE_TRY(std::unique_ptr<Policy> shipped, hidane::vtoken::MakePolicy(name));
  const PolicyTraits traits = shipped->traits();
  HIDANE_CHECK_OK(CheckSignals(traits, signals));
  const auto share = static_cast<uint32_t>(traits.recent_share * static_cast<float>(keep));
  return Scorer{.shipped = std::move(shipped),
                .guards = {traits.sinks, std::max(traits.recent, share)}};
}

Status Choose(const SequenceKv& kv, const Scorer& scorer, const hidane_vt_signals& s, uint32_t keep,
              uint64_t seed, std::vector<uint32_t>& out) {
  Gathered g;
  std::vector<float> score;
  std::vector<uint64_t> keys;
  std::vector<uint32_t> victims;
  for (uint32_t unit = 0; unit < kv.shape().units; ++unit) {
    Gather(kv, unit, s, g);
    const TokenView view{.unit = unit,
                         .logical_length = kv.logical_length(),
                         .seed = seed,
                         .positions = g.positions,
                         .column_sum = g.column_sum,
                         .low_count = g.low_count,
                         .last_row = g.last_row,
                         .window_sum = g.window_sum,
                         .key_norm = g.key_norm,
                         .key_rows = g.key_rows,
                         .head_dim = s.head_dim};
    HIDANE_CHECK_OK(scorer.Score(view, score));
    HIDANE_CHECK_OK(
        hidane::vtoken::SelectVictims(score, g.positions, scorer.guards, keep, keys, victims));
    for (const uint32_t index : victims) out.push_back(g.slots[index]);
  }
  return {};
}

}  // namespace

int32_t hidane_vt_choose(hidane_vt_context* context, hidane_vt_seq seq,
                         const hidane_vt_policy* policy, const char* name,
                         const hidane_vt_signals* signals, uint32_t keep, uint64_t seed,
                         uint32_t* victims, uint32_t capacity, uint32_t* n) {
  return context->Call([&]() -> Status {
    HIDANE_CHECK_OK(CheckStruct(signals));
    HIDANE_TRY(const CSequence* const found, context->Find(seq));
    if (signals->slots != found->kv.active_length()) {
      return Fail(Code::kInvalidArgument, fmt::format("signals of {} slots, but {} are active",
                                                      signals->slots, found->kv.active_length()));
    }
    if (!found->kv.waiting_slots().empty()) {
      return Fail(Code::kInvalidArgument, "a slot waits for the next token");
    }
    HIDANE_TRY(const Scorer scorer, ScorerOf(policy, name, *signals, keep));
    std::vector<uint32_t> chosen;
    HIDANE_CHECK_OK(Choose(found->kv, scorer, *signals, keep, seed, chosen));
    return hidane::vtoken::CopyOut<uint32_t>(chosen, victims, capacity, n);
  });
}
