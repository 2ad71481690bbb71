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
    {"least_tokens", MakeLeastTokensPolicy},
    {"fixed_hash", MakeFixedHashPolicy},
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

}  // namespace hidane::routing
