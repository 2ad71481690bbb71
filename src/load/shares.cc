#include "load/shares.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace hidane::load {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kOutputTokenCost = 2;  // in prefilled tokens; the price that admission uses

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : kUnknown;
}

uint32_t StaticOf(const Outcome& o, std::span<const uint32_t> static_tokens) {
  return o.tenant < static_tokens.size() ? static_tokens[o.tenant] : 0;
}

/// Static tokens that had to be prefilled for this request.
double StaticMissed(const Outcome& o, std::span<const uint32_t> static_tokens) {
  const uint32_t all = StaticOf(o, static_tokens);
  return all > o.cached_tokens ? all - o.cached_tokens : 0;
}

}  // namespace

std::optional<double> SumMetric(std::string_view exposition, std::string_view name) {
  std::optional<double> sum;
  while (!exposition.empty()) {
    const size_t end = std::min(exposition.find('\n'), exposition.size());
    const std::string_view line = exposition.substr(0, end);
    exposition.remove_prefix(std::min(end + 1, exposition.size()));
    if (!line.starts_with(name)) continue;
    std::string_view rest = line.substr(name.size());
    if (rest.starts_with('{')) {
      // A label's value may hold a brace, so the last one ends the labels.
      const size_t close = rest.rfind('}');
      if (close == std::string_view::npos) continue;
      rest.remove_prefix(close + 1);
    }
    if (!rest.starts_with(' ')) continue;
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    double value = 0;
    const auto [ptr, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc{}) sum = sum.value_or(0) + value;
  }
  return sum;
}

EngineCounters EngineCounters::operator-(const EngineCounters& before) const {
  return {busy_s - before.busy_s, prefill_s - before.prefill_s, recompute_s - before.recompute_s};
}

EngineCounters& EngineCounters::operator+=(const EngineCounters& other) {
  busy_s += other.busy_s;
  prefill_s += other.prefill_s;
  recompute_s += other.recompute_s;
  return *this;
}

std::optional<EngineCounters> ParseEngineCounters(std::string_view exposition) {
  const auto busy = SumMetric(exposition, "hidane_engine_busy_seconds_total");
  const auto prefill = SumMetric(exposition, "hidane_engine_prefill_seconds_total");
  const auto recompute = SumMetric(exposition, "hidane_engine_recompute_seconds_total");
  if (!busy || !prefill || !recompute) return std::nullopt;
  return EngineCounters{*busy, *prefill, *recompute};
}

std::vector<uint32_t> StaticTokens(std::span<const Outcome> outcomes, uint32_t tenants,
                                   uint32_t own_words) {
  std::vector<uint32_t> least(tenants, 0);
  for (const Outcome& o : outcomes) {
    if (!o.ok() || o.tenant >= tenants || o.prompt_tokens <= own_words) continue;
    const uint32_t tokens = o.prompt_tokens - own_words;
    least[o.tenant] = least[o.tenant] == 0 ? tokens : std::min(least[o.tenant], tokens);
  }
  return least;
}

Shares SharesFromCounters(const EngineCounters& run, std::span<const Outcome> outcomes,
                          std::span<const uint32_t> static_tokens) {
  double missed_static = 0, missed = 0;
  for (const Outcome& o : outcomes) {
    missed_static += StaticMissed(o, static_tokens);
    missed += o.prompt_tokens > o.cached_tokens ? o.prompt_tokens - o.cached_tokens : 0;
  }
  return {.recompute = Ratio(run.recompute_s, run.busy_s),
          .static_prefill =
              Ratio(run.prefill_s, run.busy_s) * Ratio(missed_static, std::max(missed, 1.0))};
}

Shares EstimateShares(std::span<const Outcome> warmup, std::span<const Outcome> outcomes,
                      std::span<const uint32_t> static_tokens) {
  std::set<std::pair<std::string, uint32_t>> seen;
  for (const Outcome& o : warmup) seen.emplace(o.worker, o.tenant);
  double recomputed = 0, missed_static = 0, work = 0;
  for (const Outcome& o : outcomes) {
    const double missed = StaticMissed(o, static_tokens);
    missed_static += missed;
    if (!seen.emplace(o.worker, o.tenant).second) recomputed += missed;
    work += o.prompt_tokens > o.cached_tokens ? o.prompt_tokens - o.cached_tokens : 0;
    work += kOutputTokenCost * o.completion_tokens;
  }
  // A trace has no static prefixes of which anything could be said.
  const bool known = std::any_of(static_tokens.begin(), static_tokens.end(),
                                 [](uint32_t tokens) { return tokens > 0; });
  if (!known) return {.recompute = kUnknown, .static_prefill = kUnknown};
  return {.recompute = Ratio(recomputed, work), .static_prefill = Ratio(missed_static, work)};
}

}  // namespace hidane::load
