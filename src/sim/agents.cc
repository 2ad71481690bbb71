#include "sim/agents.h"

#include <algorithm>
#include <utility>

#include "base/rng.h"
#include "sim/agents_table.h"
#include "sim/random.h"
#include "sim/trace_builder.h"

namespace hidane::sim {
namespace {

constexpr uint32_t kBlock = 64;
// Zipf(0.7) over 400 texts: its shares are those of the recorded (model, tools, system) triples,
// of which 516 sessions have 284, the commonest five 25, 22, 12, 8 and 7 times.
constexpr uint32_t kStaticTexts = 400;
constexpr double kStaticZipf = 0.7;
constexpr uint64_t kStaticSeed = 0x68696461;  // texts are the same for every seed

double Draw(std::span<const Quantile> table, Rng& rng) {
  return AtQuantile(table, rng.Unit());
}

/// How a turn follows the one before.
struct Step {
  enum class Keeps : uint8_t { kHead, kNothing, kMost, kAll };
  Keeps keeps = Keeps::kAll;
  double output = 0;  ///< of the turn before
  double added = 0;   ///< beside it; scaled so that the session grows as it should
  double size = 1;    ///< of an edit: over the prompt before
  double keep = 0;    ///< kMost: share of the prompt before; kNothing: of the static text
  double think_s = 0;
  double tokens = 0;  ///< of its prompt
  bool compacts = false;
  Keeps compact_keeps = Keeps::kHead;
  double compact_size = 1;  ///< over the prompt before
};

/// `usual`: the session's own place among think times, 0..1.
Step DrawStep(Rng& rng, double usual, const Weighted& edits, const Weighted& compactions) {
  Step step;
  step.output = std::max(1.0, Draw(agents::kOutputTokens, rng));
  const double unusual = rng.Unit();
  const bool as_usual = rng.Unit() < agents::kThinkUsual;
  step.think_s = AtQuantile(agents::kThinkSeconds, as_usual ? usual : unusual);
  step.added = Draw(agents::kAddedTokens, rng);
  step.keep = rng.Unit();
  step.compact_keeps = static_cast<Step::Keeps>(compactions.Draw(rng));
  step.compact_size = Draw(agents::kCompactSize, rng);
  if (rng.Unit() >= agents::kEditShare) return step;
  step.keeps = static_cast<Step::Keeps>(edits.Draw(rng));
  step.size = Draw(agents::kEditSize, rng);
  if (step.keeps == Step::Keeps::kMost) step.keep = Draw(agents::kEditKeep, rng);
  return step;
}

/// The lengths of a session's prompts.
struct Lengths {
  double first = 0, least = 0;
  double compact_at = 0;

  /// Sets them, with what steps add times `scale`. Returns how much the steps that only add grow
  /// by. `size` and `keeps` are of the compaction, where a step is one.
  double Grow(std::vector<Step>& steps, double scale) const {
    double tokens = first, grown = 0;
    for (Step& step : steps) {
      const double more = AtQuantile(agents::kAddedByContext, tokens / agents::kContextMax);
      double next = step.keeps == Step::Keeps::kAll
                        ? tokens + step.output + scale * more * step.added
                        : tokens * step.size;
      step.compacts = next > compact_at;
      if (step.compacts) next = tokens * step.compact_size;
      next = std::clamp(next, least, double{agents::kContextMax});
      if (!step.compacts && step.keeps == Step::Keeps::kAll) grown += next - tokens;
      step.tokens = tokens = next;
    }
    return grown;
  }

  /// The same with the scale that makes it `growth`, by bisection.
  void GrowBy(std::vector<Step>& steps, double growth) const {
    double low = 0, high = kScaleMax;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + high) / 2;
      (Grow(steps, middle) < growth ? low : high) = middle;
    }
    Grow(steps, low);
  }

 private:
  static constexpr double kScaleMax = 64;
  static constexpr int kHalvings = 24;
};

class Generator {
 public:
  explicit Generator(const AgentsOptions& options)
      : options_(options),
        rng_(options.seed),
        texts_(ZipfWeights(kStaticTexts, kStaticZipf)),
        edits_(agents::kEdits),
        compactions_(agents::kCompactions) {}

  Trace Make() {
    for (uint32_t i = 0; i < options_.sessions; ++i) AddSession(i);
    return trace_.Finish();
  }

 private:
  void AddSession(uint32_t number) {
    const uint32_t text = texts_.Draw(rng_);
    const uint64_t own = OwnIds(options_.seed, number);
    Rng text_rng(Mix64(kStaticSeed + text));
    const auto k1_blocks = static_cast<uint32_t>(Draw(agents::kStaticTokens, text_rng)) / kBlock;
    const double u = rng_.Unit();
    const auto* stratum = agents::kStrata;
    while (stratum->turns_below <= u) ++stratum;
    const auto turns = static_cast<uint32_t>(AtQuantile(agents::kTurns, u));
    const double least = (k1_blocks + 1) * kBlock;
    const double first = std::max(least, Draw(stratum->first_tokens, rng_));
    const double growth = Draw(stratum->growth, rng_) * (agents::kContextMax - first);

    std::vector<Step> steps;
    const double usual_think = rng_.Unit();
    for (uint32_t t = 1; t < turns; ++t) {
      steps.push_back(DrawStep(rng_, usual_think, edits_, compactions_));
    }
    // Sessions that would pass the bound are compacted, and then usually well before it.
    double compact_at = Draw(agents::kCompactAt, rng_);
    if (first + growth <= agents::kContextMax || compact_at < first) {
      compact_at = agents::kContextMax;
    }
    Lengths{first, least, compact_at}.GrowBy(steps, growth);
    Emit(number, text, own, k1_blocks, static_cast<uint32_t>(first), steps);
  }

  void Emit(uint32_t number, uint32_t text, uint64_t own, uint32_t k1_blocks, uint32_t first,
            const std::vector<Step>& steps) {
    trace_.AddSession();
    TraceTurn turn{.input_tokens = first, .k1_end = k1_blocks, .k2_end = first / kBlock};
    for (size_t t = 0; t <= steps.size(); ++t) {
      const double output =
          t < steps.size() ? steps[t].output : std::max(1.0, Draw(agents::kOutputTokens, rng_));
      turn.output_tokens = static_cast<uint32_t>(output);
      // The bound of a trace is far above what sessions of these statistics hold.
      if (!trace_.AddTurn(number, turn)) return;
      if (t == 0) trace_.AddRun(OwnIds(kStaticSeed, text), k1_blocks * kBlock);
      const uint32_t kept = t == 0 ? k1_blocks : turn.keep;
      trace_.AddRun(OwnIds(own, t), turn.input_tokens - kept * kBlock);
      if (t < steps.size()) turn = Follow(turn, steps[t], k1_blocks);
    }
  }

  static TraceTurn Follow(const TraceTurn& last, const Step& step, uint32_t k1_blocks) {
    TraceTurn turn = last;
    turn.think = FromSeconds(step.think_s);
    turn.input_tokens = static_cast<uint32_t>(step.tokens);
    const uint32_t whole = last.input_tokens / kBlock;
    const auto share = [&](uint32_t blocks) { return static_cast<uint32_t>(step.keep * blocks); };
    switch (step.compacts ? step.compact_keeps : step.keeps) {
      case Step::Keeps::kAll:
        turn.keep = whole;
        break;
      case Step::Keeps::kHead:
        turn.keep = k1_blocks;
        break;
      case Step::Keeps::kNothing:
        turn.keep = share(k1_blocks);
        break;
      case Step::Keeps::kMost:
        turn.keep = share(whole);
        break;
    }
    turn.keep = std::min(turn.keep, (turn.input_tokens - 1) / kBlock);
    if (turn.keep < turn.k2_end) turn.k2_end = turn.input_tokens / kBlock;
    return turn;
  }

  AgentsOptions options_;
  Rng rng_;
  Weighted texts_, edits_, compactions_;
  TraceBuilder trace_{TraceFormat::kGenerated, kBlock};
};

}  // namespace

Trace GenerateAgents(const AgentsOptions& options) {
  return Generator(options).Make();
}

Trace SampleAgents(const Trace& recorded, const AgentsOptions& options) {
  Trace sample = recorded;
  std::erase_if(sample.sessions, [&](const TraceSession& session) {
    const auto turns = recorded.TurnsOf(session);
    return session.subagent || std::any_of(turns.begin(), turns.end(), [](const TraceTurn& turn) {
             return turn.input_tokens > agents::kContextMax;
           });
  });
  Rng rng(options.seed);
  auto& all = sample.sessions;
  const size_t wanted = std::min<size_t>(options.sessions, all.size());
  for (size_t i = 0; i < wanted; ++i) std::swap(all[i], all[i + rng.Below(all.size() - i)]);
  all.resize(wanted);
  return sample;
}

}  // namespace hidane::sim
