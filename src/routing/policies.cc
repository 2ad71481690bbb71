#include "routing/policies.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace hidane::routing {
namespace {

struct Known {
  std::string_view name;
  std::unique_ptr<Policy> (*make)(const Params&);
};
constexpr Known kKnown[] = {
    {"prefix", MakePrefixPolicy},
    {"round_robin", MakeRoundRobinPolicy},
    {"random", MakeRandomPolicy},
    {"least_tokens", MakeLeastTokensPolicy},
    {"power_of_two", MakePowerOfTwoPolicy},
    {"session", MakeSessionPolicy},
    {"fixed_hash", MakeFixedHashPolicy},
    {"tree", MakeTreePolicy},
    {"cost", MakeCostPolicy},
};
constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kKnown)> names{};
  std::ranges::transform(kKnown, names.begin(), &Known::name);
  return names;
}();

}  // namespace

std::unique_ptr<Policy> MakePolicy(std::string_view name, const Params& params) {
  const auto known = std::ranges::find(kKnown, name, &Known::name);
  return known == std::end(kKnown) ? nullptr : known->make(params);
}

std::span<const std::string_view> PolicyNames() {
  return kNames;
}

Choice Chosen(const Query& query, WorkerState* worker, const Params& params,
              std::vector<Candidate>& considered) {
  if (worker != nullptr) considered.push_back(Assess(query, *worker, params));
  return {worker, Rule::kPolicy};
}

WorkerState* Draw(const Query& query, WorkerSpan workers, Rng& rng, const WorkerState* except) {
  WorkerState* drawn = nullptr;
  uint64_t takers = 0;
  for (WorkerState* const w : workers) {  // a reservoir of one: no list of those that may take it
    if (w != except && query.MayTake(*w) && rng.Below(++takers) == 0) drawn = w;
  }
  return drawn;
}

}  // namespace hidane::routing
