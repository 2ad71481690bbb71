#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "admission/working_set.h"
#include "base/rng.h"

namespace hidane::admission {
namespace {

using Kind = Verdict::Kind;

constexpr uint64_t kConversations = 12;
constexpr uint32_t kOldestEvery = 3;

/// What the test knows of one conversation.
struct Known {
  Turn turn;
  std::vector<Ticket> running, waiting;
  uint64_t entry = 0;  ///< order of entry; 0: unknown
};

/// Drives a WorkingSet at random and keeps its own account beside it.
class Model {
 public:
  Model(uint64_t seed, uint32_t quantum)
      : rng_(seed),
        set_({.fill = 1,
              .entry_fill = 0.9,
              .quantum_turns = quantum,
              .oldest_every = kOldestEvery}) {
    set_.SetCapacity(kCapacity, now_);
    limit_ = kCapacity;
    for (uint64_t c = 1; c <= kConversations; ++c) {
      Turn& turn = known_[c].turn;
      turn = {.conversation = c,
              .prefix = 1 + rng_.Below(3),
              .prefix_tokens = 0,
              .own_tokens = static_cast<uint32_t>(1 + rng_.Below(400)),
              .tenant = static_cast<uint32_t>(rng_.Below(4)),
              .cls = static_cast<Class>(rng_.Below(3))};
      turn.prefix_tokens = static_cast<uint32_t>(50 * turn.prefix);
    }
  }

  void Step() {
    now_ += FromSeconds(rng_.Exponential(2));
    Known& one = known_[1 + rng_.Below(kConversations)];
    switch (rng_.Below(6)) {
      case 0:
      case 1:
        Arrive(one);
        break;
      case 2:
      case 3:
        Finish(one);
        break;
      case 4:
        Leave(one);
        break;
      default:
        Other();
    }
    LetIn();
    Check();
  }

  void FreeAll() {
    for (auto& [key, one] : known_) {
      for (const Ticket t : one.waiting) set_.Cancel(t, now_);
      one.waiting.clear();
    }
    LetIn();
    for (auto& [key, one] : known_) {
      for (const Ticket t : one.running) set_.Done(t, one.turn.own_tokens, now_);
      set_.End(key, now_);
    }
    RC_ASSERT(set_.inside() == 0u);
    RC_ASSERT(set_.waiting() == 0u);
    RC_ASSERT(set_.tokens() == 0u);
  }

 private:
  static constexpr uint64_t kCapacity = 1000;

  struct Joined {
    uint64_t places;  ///< given before
    size_t before;    ///< in line then
  };

  void Arrive(Known& one) {
    one.turn.own_tokens += static_cast<uint32_t>(rng_.Below(60));
    const bool inside = set_.Inside(one.turn.conversation);
    const Verdict verdict = set_.Arrive(one.turn, now_);
    RC_ASSERT(verdict.kind != Kind::kRefuse);
    if (inside) RC_ASSERT(verdict.kind == Kind::kGo);
    if (verdict.kind == Kind::kGo) {
      if (!inside) one.entry = 0;
      arrived_ = inside ? nullptr : &one;
      one.running.push_back(verdict.ticket);
    } else {
      if (one.waiting.empty()) {
        const Joined join{.places = places_, .before = joined_.size()};
        joined_[one.turn.conversation] = join;
      }
      one.waiting.push_back(verdict.ticket);
    }
  }

  void Finish(Known& one) {
    if (one.running.empty()) return;
    const Ticket ticket = one.running.back();
    one.running.pop_back();
    one.turn.own_tokens += static_cast<uint32_t>(rng_.Below(40));
    set_.Done(ticket, one.turn.own_tokens, now_);
  }

  void Leave(Known& one) {
    if (!one.waiting.empty()) {
      set_.Cancel(one.waiting.back(), now_);
      one.waiting.pop_back();
      if (one.waiting.empty()) joined_.erase(one.turn.conversation);
    } else if (one.running.empty()) {
      set_.End(one.turn.conversation, now_);
      one.turn.own_tokens = static_cast<uint32_t>(1 + rng_.Below(400));
    }
  }

  void Other() {
    if (rng_.Below(4) > 0) return set_.Tick(now_);
    limit_ = kCapacity / 2 + rng_.Below(kCapacity);
    set_.SetCapacity(limit_, now_);
  }

  void LetIn() {
    const std::vector<Ticket> in = set_.TakeLetIn();
    if (arrived_ != nullptr && in.empty()) arrived_->entry = ++entries_;
    arrived_ = nullptr;  // together with others its order is not to be seen from outside
    for (size_t i = 0; i < in.size();) {
      Known& one = WaitingWith(in[i]);
      RC_ASSERT(std::equal(one.waiting.begin(), one.waiting.end(), in.begin() + i));
      i += one.waiting.size();
      ++places_;
      // At its own place: those that are given with it, behind it, overtake nobody.
      CheckNotOvertaken(joined_.at(one.turn.conversation));
      joined_.erase(one.turn.conversation);
      one.entry = ++entries_;
      one.running.insert(one.running.end(), one.waiting.begin(), one.waiting.end());
      one.waiting.clear();
    }
    for (const auto& [key, join] : joined_) CheckNotOvertaken(join);
  }

  /// Nobody is overtaken for ever.
  void CheckNotOvertaken(const Joined& join) {
    RC_ASSERT(places_ - join.places <= kOldestEvery * (join.before + 1) + 2);
  }

  Known& WaitingWith(Ticket ticket) {
    for (auto& [key, one] : known_) {
      if (!one.waiting.empty() && one.waiting.front() == ticket) return one;
    }
    RC_FAIL("let in, but not in line");
  }

  void Check() {
    uint64_t tokens = 0;
    std::set<uint64_t> prefixes;
    std::vector<const Known*> inside;
    for (const auto& [key, one] : known_) {
      RC_ASSERT(one.running.empty() || one.waiting.empty());
      if (!one.running.empty()) RC_ASSERT(set_.Inside(key));
      if (!one.waiting.empty()) RC_ASSERT(!set_.Inside(key));
      if (!set_.Inside(key)) continue;
      inside.push_back(&one);
      tokens += one.turn.own_tokens;
      if (prefixes.insert(one.turn.prefix).second) tokens += one.turn.prefix_tokens;
    }
    RC_ASSERT(set_.inside() == inside.size());
    RC_ASSERT(set_.tokens() == tokens);
    CheckLimit(std::move(inside), tokens);
  }

  /// Over the limit only as long as those who must go, the last in, have turns under way.
  void CheckLimit(std::vector<const Known*> inside, uint64_t tokens) {
    for (const Known* one : inside) {
      if (one->entry == 0) return;
    }
    std::sort(inside.begin(), inside.end(), [](const Known* a, const Known* b) {
      return std::tie(a->turn.cls, a->entry) < std::tie(b->turn.cls, b->entry);
    });
    std::map<uint64_t, int> users;
    for (const Known* one : inside) ++users[one->turn.prefix];
    for (; tokens > limit_ && inside.size() > 1; inside.pop_back()) {
      const Known& last = *inside.back();
      RC_ASSERT(!last.running.empty());
      const bool alone = users[last.turn.prefix] == 1;
      const uint64_t frees = last.turn.own_tokens + (alone ? last.turn.prefix_tokens : 0);
      tokens -= std::min(tokens, frees);
    }
  }

  Rng rng_;
  WorkingSet set_;
  TimePoint now_{};
  uint64_t limit_ = 0;
  uint64_t entries_ = 0;
  Known* arrived_ = nullptr;  ///< in this step, and let in at once
  uint64_t places_ = 0;
  std::map<uint64_t, Known> known_;
  std::map<uint64_t, Joined> joined_;
};

RC_GTEST_PROP(WorkingSetProperty, KeepsItsAccountItsLimitAndItsPromises, ()) {
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  const auto quantum = *rc::gen::element(0u, 1u, 3u);
  Model model(seed, quantum);
  for (int step = 0; step < 300; ++step) model.Step();
  model.FreeAll();
}

}  // namespace
}  // namespace hidane::admission
