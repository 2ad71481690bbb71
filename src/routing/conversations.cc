#include "routing/conversations.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace hidane::routing {
namespace {

constexpr uint32_t kSamplesMin = 8;  // until then a prefix's conversations are as all others'

}  // namespace

Conversations::Conversations(const Params& params, Accounts& accounts, DeltaLog& log)
    : accounts_(accounts),
      log_(log),
      counted_(params.conversations_max),
      remembered_(params.conversations_max / 2),
      usual_(params.prefixes_max) {}

uint64_t Conversations::Pair(uint64_t k1, uint64_t worker) {
  return Mix64(k1 ^ Mix64(worker));
}

const Conversations::Talk* Conversations::Find(uint64_t k2) const {
  const Talk* const talk = counted_.Find(k2);
  return talk != nullptr ? talk : remembered_.Find(k2);
}

const Conversations::Usual& Conversations::UsualOf(uint64_t k1) const {
  const Usual* const usual = usual_.Find(k1);
  return usual != nullptr && usual->samples >= kSamplesMin ? *usual : usual_of_all_;
}

void Conversations::Learn(uint64_t k1, bool goes_on, uint32_t tokens) {
  constexpr double kGainMin = 0.02;
  for (Usual* const usual : {&usual_.Touch(k1), &usual_of_all_}) {
    ++usual->samples;
    const double gain = std::max(kGainMin, 1.0 / usual->samples);
    usual->goes_on += gain * ((goes_on ? 1 : 0) - usual->goes_on);
    if (goes_on) usual->tokens += gain * (tokens - usual->tokens);
  }
}

// By small steps in log space, as RunningReserve.
void Conversations::LearnGap(double gap_s) {
  constexpr double kQuantile = 0.95;
  constexpr double kStep = 0.1;
  gap_s_ *= std::exp(gap_s > gap_s_ ? kStep * kQuantile : -kStep * (1 - kQuantile));
  gap_s_ = std::clamp(gap_s_, 1.0, 3'600.0);
}

double Conversations::idle_s() const {
  constexpr double kTimes = 2;
  return std::max(30.0, kTimes * gap_s_);
}

void Conversations::Count(const Talk& talk, bool add) {
  const uint64_t pair = Pair(talk.k1, talk.worker);
  if (Account* const account = accounts_.FindKey(talk.worker)) {
    accounts_.Assign(*account, {.conversations = add ? talk.tokens : -uint64_t{talk.tokens}});
  }
  if (add) {
    MakeRoom(live_);
    ++live_[pair];
  } else if (const auto at = live_.find(pair); --at->second == 0) {
    live_.erase(at);
  }
}

// Into the accounts, the most recent.
void Conversations::Put(uint64_t k2, const Talk& talk) {
  remembered_.Erase(k2);
  Talk& entry = counted_.Touch(k2, [this](auto& oldest) { Count(oldest.second, false); });
  if (entry.counted) Count(entry, false);
  entry = talk;
  entry.counted = true;
  Count(entry, true);
}

void Conversations::Remember(uint64_t k2, Talk talk) {
  talk.counted = false;
  remembered_.Touch(k2) = talk;
}

void Conversations::Serve(const Turn& turn, TimePoint now) {
  const Talk* const known = Find(turn.k2);
  Talk talk = known != nullptr ? *known : Talk{};
  const bool goes_on = turn.has_history;
  Learn(turn.k1, goes_on, turn.tokens);
  if (known != nullptr && goes_on) LearnGap(Seconds(now - talk.seen));
  talk.k1 = turn.k1;
  talk.worker = turn.worker;
  talk.tokens = turn.tokens;
  talk.seen = now;
  if (!goes_on && !talk.counted && !GoOn(turn.k1)) {
    Remember(turn.k2, talk);
    return;
  }
  Tell(turn.k2, talk, turn.tokens);
  Put(turn.k2, talk);
}

// Others hear of each turn: accounts that lag behind misplace the next conversation.
void Conversations::Tell(uint64_t k2, Talk& talk, uint32_t tokens) {
  talk.stamp = log_.Next();
  log_.Push({.key = k2,
             .k1 = talk.k1,
             .worker = talk.worker,
             .stamp = talk.stamp,
             .tokens = tokens,
             .kind = Delta::Kind::kConversation});
}

void Conversations::Leave(uint64_t k2) {
  const Talk* const known = counted_.Find(k2);
  if (known == nullptr) return;
  Talk talk = *known;
  Tell(k2, talk, 0);
  Drop(k2, talk);
}

void Conversations::Drop(uint64_t k2, const Talk& talk) {
  Count(talk, false);
  Remember(k2, talk);
  counted_.Erase(k2);
}

void Conversations::Release(TimePoint now) {
  const double idle = idle_s();
  while (!counted_.empty()) {
    const auto& [k2, talk] = counted_.oldest();
    if (Seconds(now - talk.seen) < idle) return;
    Drop(k2, Talk(talk));
  }
}

void Conversations::OnJoined(uint64_t worker) {
  Account& account = *accounts_.FindKey(worker);
  for (const auto& [k2, talk] : counted_) {
    if (talk.worker == worker) accounts_.Assign(account, {.conversations = talk.tokens});
  }
}

bool Conversations::Merge(const Delta& delta, TimePoint now) {
  log_.Seen(delta.stamp);
  const Talk* const known = Find(delta.key);
  Talk talk = known != nullptr ? *known : Talk{};
  if (delta.stamp <= talk.stamp) return false;
  if (delta.tokens == 0 && talk.counted) Drop(delta.key, talk);
  talk.k1 = delta.k1;
  talk.worker = delta.worker;
  talk.stamp = delta.stamp;
  talk.seen = now;
  if (delta.tokens == 0) {
    Remember(delta.key, talk);
  } else {
    talk.tokens = delta.tokens;
    Put(delta.key, talk);
  }
  return true;
}

// The latest last, as they were told.
void Conversations::AppendSnapshot(std::vector<Delta>& out) const {
  const auto begin = static_cast<ptrdiff_t>(out.size());
  for (const auto& [k2, talk] : counted_) {
    out.push_back({.key = k2,
                   .k1 = talk.k1,
                   .worker = talk.worker,
                   .stamp = talk.stamp,
                   .tokens = talk.tokens,
                   .kind = Delta::Kind::kConversation});
  }
  std::reverse(out.begin() + begin, out.end());
}

}  // namespace hidane::routing
