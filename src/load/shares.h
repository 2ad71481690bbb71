#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "load/answer.h"

namespace hidane::load {

/// Where engine time went, over a run. Pure arithmetic on what was counted.
struct Shares {
  double recompute;       ///< prefilling tokens that this engine had held before / busy time
  double static_prefill;  ///< prefilling static tokens, first sight included / busy time
};

/// Sum over all series of a metric in Prometheus text (labels ignored); nullopt if absent.
std::optional<double> SumMetric(std::string_view exposition, std::string_view name);

/// Busy time of engines that count it, in seconds of CPU time since their start.
struct EngineCounters {
  double busy_s = 0;       ///< all steps
  double prefill_s = 0;    ///< the share of it that prefilled
  double recompute_s = 0;  ///< the share of that which prefilled tokens held before
  EngineCounters operator-(const EngineCounters& before) const;
  EngineCounters& operator+=(const EngineCounters& other);
};
/// nullopt when the engine lacks any of them.
std::optional<EngineCounters> ParseEngineCounters(std::string_view exposition);

/// Tokens of each tenant's static prefix as the engine counts them: what all its requests share.
/// The least prompt seen less `own_words`, the least that a user's text takes. [tenants]
std::vector<uint32_t> StaticTokens(std::span<const Outcome> outcomes, uint32_t tenants,
                                   uint32_t own_words);

/// Shares from the engines' own clocks; `static_tokens` as above.
Shares SharesFromCounters(const EngineCounters& run, std::span<const Outcome> outcomes,
                          std::span<const uint32_t> static_tokens);

/// Shares from token counts alone, for engines that count no time: an output token is taken to cost
/// two prefilled ones. A tenant's first request at a worker is first sight, all later misses are
/// recomputed. `warmup` is not counted but has been seen.
Shares EstimateShares(std::span<const Outcome> warmup, std::span<const Outcome> outcomes,
                      std::span<const uint32_t> static_tokens);

}  // namespace hidane::load
