#include <algorithm>
#include <utility>

#include "sim/block_names.h"
#include "sim/engine.h"

namespace hidane::sim {
namespace {

/// How many names both chains begin with. Equal names have equal names before them.
size_t CommonPrefix(std::span<const Sha256Digest> a, std::span<const Sha256Digest> b) {
  size_t common = 0;
  for (size_t end = std::min(a.size(), b.size()); common < end;) {
    const size_t middle = common + (end - common) / 2;
    if (a[middle] == b[middle]) {
      common = middle + 1;
    } else {
      end = middle;
    }
  }
  return common;
}

}  // namespace

/// The work that an engine has. Sums of whole numbers: their order shows nowhere.
struct Engine::Backlog {
  struct Leaves {
    uint32_t steps;   ///< decode steps until it ends
    uint32_t tokens;  ///< that its end frees, without its static prefix
  };
  Duration prefill{};
  uint64_t prefill_tokens = 0;
  uint64_t waiting_tokens = 0;  ///< of those that hold nothing yet
  uint32_t decoding = 0;
  uint64_t decode_kv_tokens = 0;
  std::vector<Leaves> running;

  /// Decode steps until `tokens` more have come free.
  uint32_t StepsUntilFree(uint64_t tokens) {
    std::ranges::sort(running, {}, [](const Leaves& l) { return std::pair(l.steps, l.tokens); });
    uint64_t freed = 0;
    for (const Leaves& one : running) {
      freed += one.tokens;
      if (freed >= tokens) return one.steps;
    }
    return running.empty() ? 0 : running.back().steps;
  }
};

void Engine::AddTo(Backlog& backlog, const sched::SeqState& seq, const Live& live) const {
  uint32_t computed = seq.computed;
  if (seq.running) {
    const uint32_t own = seq.tokens - std::min(live.static_tokens, seq.tokens);
    backlog.running.push_back({live.output_tokens - live.produced, own});
  } else {
    const uint64_t hit = TokensOf(scheduler_.cache().Find(seq.chain).blocks);
    computed = static_cast<uint32_t>(std::min<uint64_t>(hit, seq.tokens - 1));
    backlog.waiting_tokens += seq.tokens - computed;
  }
  if (seq.tokens - computed > 1) {
    backlog.prefill += ToDuration(model_.TokenSeconds(computed, seq.tokens));
    backlog.prefill_tokens += seq.tokens - computed;
  } else {
    ++backlog.decoding;
    backlog.decode_kv_tokens += seq.tokens;
  }
}

Forecast Engine::Predict(const prompt::Identity& prompt, uint32_t output_tokens) const {
  const auto names = NamesOf(prompt);
  size_t blocks = scheduler_.cache().Find(names).blocks;
  Backlog backlog;
  for (const auto& [id, live] : live_) {
    const sched::SeqState& seq = scheduler_.state(id);
    blocks = std::max(blocks, CommonPrefix(names, seq.chain));
    AddTo(backlog, seq, live);
  }
  const StepShape::Chunk one{.new_tokens = 1};
  const double per_step = model_.PrefillSeconds({&one, 1}) - model_.TokenSeconds(0, 1);
  const auto steps = [this](uint64_t tokens) {
    const uint64_t of_step = options_.max_num_batched_tokens;
    return static_cast<double>((tokens + of_step - 1) / of_step);
  };
  Forecast forecast;
  const auto cached = static_cast<uint32_t>(TokensOf(static_cast<uint32_t>(blocks)));
  forecast.cached_tokens = std::min(cached, prompt.tokens - 1);
  const uint32_t own = prompt.tokens - forecast.cached_tokens;
  forecast.wait = Seconds(backlog.prefill) + per_step * steps(backlog.prefill_tokens);
  forecast.prefill =
      model_.TokenSeconds(forecast.cached_tokens, prompt.tokens) + per_step * steps(own);
  const double decode = model_.DecodeSeconds(backlog.decoding, backlog.decode_kv_tokens);
  forecast.decode = decode * steps(backlog.prefill_tokens + own);
  const uint64_t wanted = own + output_tokens + backlog.waiting_tokens;
  const uint64_t free = TokensOf(scheduler_.cache().blocks_free());
  if (wanted > free) forecast.kv_wait = decode * backlog.StepsUntilFree(wanted - free);
  return forecast;
}

}  // namespace hidane::sim
