#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <vector>

#include "admission/working_set.h"
#include "base/rng.h"

namespace hidane::admission {
namespace {

/// Conversations in a closed loop: a turn of a second, a gap of some seconds, for ever.
struct ClosedLoop {
  struct Conversation {
    uint32_t own = 0;
    uint32_t tenant = 0;
    TimePoint waits_since{};
  };

  ClosedLoop(uint64_t seed, uint32_t tenants, uint32_t each, const Params& params, uint64_t room)
      : rng(seed), set(params) {
    set.SetCapacity(room, now);
    for (uint32_t i = 0; i < tenants * each; ++i) {
      all.push_back({.own = static_cast<uint32_t>(50 + rng.Below(100)), .tenant = i % tenants});
      at.push({FromSeconds(rng.Unit()), {i, Ticket(kNone)}});
    }
  }

  void RunUntil(TimePoint end) {
    while (at.top().first < end) {
      now = at.top().first;
      const auto [who, ticket] = at.top().second;
      at.pop();
      if (ticket == Ticket(kNone)) {
        Send(who);
      } else {
        set.Done(ticket, all[who].own, now);
        at.push({now + FromSeconds(rng.Exponential(3)), {who, Ticket(kNone)}});
      }
      for (const Ticket let_in : set.TakeLetIn()) Serve(waiting.extract(let_in).mapped(), let_in);
    }
  }

  void Send(uint32_t who) {
    const Conversation& one = all[who];
    const Verdict verdict =
        set.Arrive({.conversation = who + 1, .own_tokens = one.own, .tenant = one.tenant}, now);
    all[who].waits_since = now;
    if (verdict.kind == Verdict::Kind::kGo) return Serve(who, verdict.ticket);
    waiting.emplace(verdict.ticket, who);
  }

  void Serve(uint32_t who, Ticket ticket) {
    longest_wait = std::max(longest_wait, now - all[who].waits_since);
    at.push({now + FromSeconds(1), {who, ticket}});
  }

  static constexpr uint64_t kNone = UINT64_MAX;
  using Event = std::pair<TimePoint, std::pair<uint32_t, Ticket>>;

  Rng rng;
  WorkingSet set;
  TimePoint now{};
  std::vector<Conversation> all;
  std::map<Ticket, uint32_t> waiting;
  Duration longest_wait{0};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> at;
};

double Jain(const std::vector<double>& x) {
  double sum = 0, squares = 0;
  for (const double v : x) sum += v, squares += v * v;
  return sum * sum / (static_cast<double>(x.size()) * squares);
}

// 16 equal tenants with six conversations each, room for half of them.
TEST(RotationTest, SharesTheTimeInsideAndBoundsTheWait) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ClosedLoop loop(seed, 16, 6, {.quantum_turns = 5}, 96 * 50);
    loop.RunUntil(FromSeconds(1'000));
    std::vector<double> inside;
    for (uint32_t tenant = 0; tenant < 16; ++tenant) {
      inside.push_back(loop.set.PlaceSeconds(tenant, loop.now));
    }
    EXPECT_GE(Jain(inside), 0.98) << seed;
    // A place is held for about 5 x 4 s, and more wait than are inside.
    EXPECT_LT(loop.longest_wait, FromSeconds(240)) << seed;
  }
}

// A tenant with ten times the conversations gets no more than its weight.
TEST(RotationTest, MoreConversationsDoNotBuyMoreThanTheTenantsShare) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    ClosedLoop loop(seed, 1, 60, {.quantum_turns = 5}, 2'000);
    for (uint32_t i = 0; i < 60; ++i) loop.all[i].tenant = i < 10 ? 1 : 0;
    loop.RunUntil(FromSeconds(1'000));
    const double greedy = loop.set.PlaceSeconds(0, loop.now);
    const double modest = loop.set.PlaceSeconds(1, loop.now);
    EXPECT_LT(greedy / modest, 1.35) << seed;
  }
}

}  // namespace
}  // namespace hidane::admission
