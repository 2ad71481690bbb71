// Where a new prefix goes, beside the rule in plain words.
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "routing/placement.h"
#include "routing/placement_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint64_t kK1 = 77;
constexpr uint32_t kTokens = 10;
constexpr double kPrefill = 1;

// All that fit by fill, then id; of the first 16 those that could begin about as soon as the
// earliest; of them the least filled, then the first in rendezvous order.
std::optional<WorkerId> ByTheRule(const Params& params, const Accounts& accounts,
                                  const std::vector<double>& waits) {
  std::vector<std::pair<double, const Account*>> options;
  for (const Account& a : accounts) {
    if (!a.member.takes_new || a.firsts() + kTokens > a.limit) continue;
    options.emplace_back(double(a.firsts()) / double(a.member.capacity_tokens), &a);
  }
  std::ranges::sort(options);
  if (options.size() > 16) options.resize(16);
  if (options.empty()) return std::nullopt;
  const auto wait = [&](const auto& o) { return waits[o.second->member.id.value()]; };
  const double earliest = wait(*std::ranges::min_element(options, {}, wait));
  const double latest = earliest + NearTie(kPrefill, params);
  std::erase_if(options, [&](const auto& o) { return wait(o) > latest; });
  const auto rank = [](const auto& o) {
    return std::pair(o.first, -RendezvousScore(kK1, o.second->member));
  };
  return std::ranges::min_element(options, {}, rank)->second->member.id;
}

RC_GTEST_PROP(PlacementProposeTest, AsksFewQueuesAndFollowsTheRule, ()) {
  const Params params;
  Accounts accounts(params);
  DeltaLog log(0);
  PlacementTable table(params, accounts, log);
  const auto n = *rc::gen::inRange<uint32_t>(1, 200);
  const auto fills = *rc::gen::inRange<uint64_t>(1, 40);  // few: many are filled alike
  std::vector<double> waits;
  for (uint32_t w = 0; w < n; ++w) {
    Member member = MakeMember(w, *rc::gen::element(100, 200));
    member.takes_new = *rc::gen::inRange(0, 8) > 0;
    accounts.Put(member);
    const uint64_t statics = 5 * *rc::gen::inRange<uint64_t>(0, fills);
    accounts.Assign(*accounts.Find(member.id), {.statics = statics, .extra = statics / 10});
    waits.push_back(*rc::gen::inRange(0, 6) / 20.0);
  }
  const auto rule = ByTheRule(params, accounts, waits);
  const auto wait = [&](WorkerId id) { return waits[id.value()]; };
  const WorkerId proposed = table.Propose(kK1, kTokens, kPrefill, wait, TimePoint{});
  if (rule) RC_ASSERT(proposed == *rule);
}

}  // namespace
}  // namespace hidane::routing
