#include "routing/accounts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "routing/placement_test_util.h"

namespace hidane::routing {
namespace {

Accounts::Filled Sorted(const Accounts& accounts, size_t most, uint64_t tokens) {
  Accounts::Filled all;
  for (const Account& a : accounts) {
    if (Accounts::HasRoom(a, tokens)) all.emplace_back(Accounts::Fill(a, tokens), &a);
  }
  std::ranges::stable_sort(all, {}, [](const auto& filled) { return filled.first; });
  all.resize(std::min(all.size(), most));
  return all;
}

RC_GTEST_PROP(AccountsProperty, TheLeastFilledAreThoseThatSortingAllWouldFind, ()) {
  Accounts accounts(Params{});
  const auto workers = *rc::gen::inRange<uint32_t>(1, 60);
  const bool alike = *rc::gen::arbitrary<bool>();
  for (uint32_t w = 0; w < workers; ++w) {
    const uint64_t capacity = alike ? 1'000 : *rc::gen::inRange<uint64_t>(500, 2'000);
    accounts.Put(MakeMember(w, capacity));
    const auto tokens = *rc::gen::inRange<uint64_t>(0, 1'000);
    const auto told = *rc::gen::inRange<uint64_t>(0, 500);
    accounts.Assign(*accounts.Find(WorkerId(w)), {.statics = tokens, .conversations = told});
  }
  const auto most = *rc::gen::inRange<size_t>(1, 20);
  const auto more = *rc::gen::inRange<uint64_t>(0, 800);
  RC_ASSERT(accounts.LeastFilled(most, more, Accounts::HasRoom) == Sorted(accounts, most, more));
}

}  // namespace
}  // namespace hidane::routing
