#include "admission/working_set.h"

#include <algorithm>

#include "base/assert.h"

namespace hidane::admission {

WorkingSet::WorkingSet(const Params& params)
    : params_(params),
      shares_(params.max_tenants),
      line_(shares_, params.oldest_every),
      drain_(params.first_wait_s),
      typical_gap_(params.idle.first) {
  HIDANE_ASSERT(params.entry_fill > 0 && params.entry_fill <= params.fill);
  HIDANE_ASSERT(params.oldest_every > 0);
}

Verdict WorkingSet::Arrive(const Turn& turn, TimePoint now) {
  if (const auto at = by_key_.find(turn.conversation); at != by_key_.end()) {
    const Where member = at->second;
    return member->inside ? Continue(member, turn, now) : Queue(member, turn, now);
  }
  const Where member = NewMember(turn);
  if (!line_.empty() || !HasRoomFor(*member)) return Queue(member, turn, now);
  inside_.splice(inside_.begin(), made_, member);
  Enter(member, now);
  Begin(member);
  return {.ticket = tickets_.Open(member)};
}

void WorkingSet::Done(Ticket ticket, uint32_t own_tokens, TimePoint now) {
  if (!tickets_.IsOpen(ticket)) return;
  const Where member = tickets_.Close(ticket);
  if (!member->inside) return Withdraw(member, ticket, now);
  Resize(*member, own_tokens, now);
  Finish(member, now);
}

void WorkingSet::Cancel(Ticket ticket, TimePoint now) {
  if (tickets_.IsOpen(ticket)) Done(ticket, tickets_.MemberOf(ticket)->own_tokens, now);
}

void WorkingSet::End(uint64_t conversation, TimePoint now) {
  const auto at = by_key_.find(conversation);
  if (at == by_key_.end()) return;
  const Where member = at->second;
  member->ended = true;
  if (!member->inside || member->running > 0) return;
  Yield(member, now);
  LetIn(now);
}

void WorkingSet::SetCapacity(uint64_t tokens, TimePoint now) {
  const auto share = [tokens](double fill) {
    return tokens == 0 ? UINT64_MAX : static_cast<uint64_t>(fill * static_cast<double>(tokens));
  };
  limit_ = share(params_.fill);
  entry_limit_ = share(params_.entry_fill);
  Shed(now);
  LetIn(now);
}

void WorkingSet::Tick(TimePoint now) {
  DropIdle(now);
  LetIn(now);
}

std::vector<Ticket> WorkingSet::TakeLetIn() {
  std::vector<Ticket> taken = std::exchange(let_in_, {});
  std::erase_if(taken, [this](Ticket ticket) { return !tickets_.IsOpen(ticket); });
  return taken;
}

Verdict WorkingSet::Waiting(Ticket ticket, TimePoint now) {
  HIDANE_ASSERT(tickets_.IsOpen(ticket) && !tickets_.MemberOf(ticket)->inside);
  Verdict verdict = Position(*tickets_.MemberOf(ticket), now);
  verdict.ticket = ticket;
  return verdict;
}

bool WorkingSet::Inside(uint64_t conversation) const {
  const auto at = by_key_.find(conversation);
  return at != by_key_.end() && at->second->inside;
}

double WorkingSet::PlaceSeconds(uint32_t tenant, TimePoint now) const {
  const TenantShare* share = shares_.Peek(tenant);
  return share == nullptr ? 0 : shares_.PlaceSeconds(*share, now);
}

// One turn.

WorkingSet::Where WorkingSet::NewMember(const Turn& turn) {
  Member& member = made_.emplace_front();
  member.key = turn.conversation;
  member.prefix = turn.prefix;
  member.prefix_tokens = turn.prefix_tokens;
  member.own_tokens = turn.own_tokens;
  member.cls = turn.cls;
  member.tenant = &shares_.Find(turn.tenant, turn.weight);
  member.usual_gap = typical_gap_;
  if (member.key != 0) by_key_.emplace(member.key, made_.begin());
  return made_.begin();
}

Verdict WorkingSet::Continue(Where member, const Turn& turn, TimePoint now) {
  if (member->running == 0 && member->turns > 0) {
    member->usual_gap = FollowGap(member->usual_gap, now - member->last_end);
  }
  member->ended = false;
  Resize(*member, turn.own_tokens, now);
  Begin(member);
  const Verdict verdict{.ticket = tickets_.Open(member)};
  Shed(now);
  LetIn(now);
  return verdict;
}

Verdict WorkingSet::Queue(Where member, const Turn& turn, TimePoint now) {
  const bool is_new = member->waiting.empty();
  if (is_new) {
    if (line_.empty()) drain_.LineBegins(now);
    line_.Join(made_, member, now);
  }
  member->own_tokens = std::max(member->own_tokens, turn.own_tokens);
  const Ticket ticket = tickets_.Open(member);
  member->waiting.push_back(ticket);
  ++waiting_turns_;
  LetIn(now);
  if (member->inside) {
    std::erase(let_in_, ticket);
    return {.ticket = ticket};
  }
  Verdict verdict = Position(*member, now);
  verdict.ticket = ticket;
  if (verdict.expected_wait > turn.patience || waiting_turns_ > params_.max_waiting) {
    tickets_.Close(ticket);
    Withdraw(member, ticket, now);
    verdict.kind = Verdict::Kind::kRefuse;
  }
  return verdict;
}

Verdict WorkingSet::Position(const Member& member, TimePoint now) {
  const FairLine::Ahead ahead = line_.AheadOf(member);
  return {.kind = Verdict::Kind::kWait,
          .position = ahead.members,
          .expected_wait = drain_.Until(ahead.members + 1, ahead.tokens + member.context(), now)};
}

void WorkingSet::Begin(Where member) {
  ++member->running;
  ++member->turns;
  inside_.splice(inside_.begin(), inside_, member);
}

void WorkingSet::Finish(Where member, TimePoint now) {
  --member->running;
  member->last_end = now;
  inside_.splice(inside_.begin(), inside_, member);
  if (member->running == 0 && MustYield(*member)) Yield(member, now);
  Shed(now);
  LetIn(now);
}

void WorkingSet::Withdraw(Where member, Ticket ticket, TimePoint now) {
  std::erase(member->waiting, ticket);
  --waiting_turns_;
  if (!member->waiting.empty()) return;
  line_.Leave(member, made_, now);
  Forget(member, made_);
  LetIn(now);
}

// One member.

void WorkingSet::Enter(Where member, TimePoint now) {
  tokens_ += Need(*member);
  Prefix& prefix = prefixes_[member->prefix];
  if (prefix.users++ == 0) prefix.tokens = member->prefix_tokens;
  member->inside = true;
  std::list<Where>& entered = entered_[static_cast<size_t>(member->cls)];
  member->entered = entered.insert(entered.end(), member);
  shares_.Holds(*member->tenant, 1, member->context(), now);
}

void WorkingSet::Yield(Where member, TimePoint now) {
  tokens_ -= Frees(*member);
  const auto prefix = prefixes_.find(member->prefix);
  if (--prefix->second.users == 0) prefixes_.erase(prefix);
  entered_[static_cast<size_t>(member->cls)].erase(member->entered);
  shares_.Holds(*member->tenant, -1, -int64_t{member->context()}, now);
  if (member->key != 0 && left_.size() < kLeftMax) left_.push_back(member->key);
  if (member->turns > 1) typical_gap_ += (member->usual_gap - typical_gap_) / 16;
  Forget(member, inside_);
}

void WorkingSet::Forget(Where member, Members& from) {
  if (member->key != 0) by_key_.erase(member->key);
  from.erase(member);
}

void WorkingSet::Resize(Member& member, uint32_t own_tokens, TimePoint now) {
  if (member.running > 1) own_tokens = std::max(own_tokens, member.own_tokens);
  tokens_ += own_tokens;
  tokens_ -= member.own_tokens;
  shares_.Holds(*member.tenant, 0, int64_t{own_tokens} - member.own_tokens, now);
  member.own_tokens = own_tokens;
}

uint64_t WorkingSet::Need(const Member& member) const {
  return prefixes_.contains(member.prefix) ? member.own_tokens : member.context();
}

uint64_t WorkingSet::Frees(const Member& member) const {
  const Prefix& prefix = prefixes_.find(member.prefix)->second;
  return member.own_tokens + (prefix.users == 1 ? prefix.tokens : 0);
}

bool WorkingSet::HasRoomFor(const Member& member) const {
  if (inside_.empty()) return true;
  return inside_.size() < params_.max_inside && tokens_ + Need(member) <= entry_limit_;
}

bool WorkingSet::MustYield(const Member& member) const {
  if (member.ended || member.key == 0) return true;
  if (member.cls == Class::kBatch && line_.WaitsFor(Class::kDefault)) return true;
  return params_.quantum_turns > 0 && member.turns >= params_.quantum_turns &&
         line_.WaitsFor(member.cls);
}

// All.

void WorkingSet::LetIn(TimePoint now) {
  for (Where next = line_.Next(now); next != line_.end(); next = line_.Next(now)) {
    if (!HasRoomFor(*next)) {
      DropIdle(now);
      YieldBatch(*next, now);
      if (!HasRoomFor(*next)) return;
    }
    drain_.LetIn(next->context(), now);
    line_.LetIn(next, inside_, now);
    Enter(next, now);
    for (const Ticket ticket : next->waiting) {
      Begin(next);
      let_in_.push_back(ticket);
    }
    waiting_turns_ -= static_cast<uint32_t>(next->waiting.size());
    next->waiting.clear();
  }
}

void WorkingSet::DropIdle(TimePoint now) {
  for (auto at = inside_.end(); at != inside_.begin();) {
    const Where member = std::prev(at);
    const Duration idle = now - member->last_end;
    if (member->running == 0 && idle < params_.idle.least) return;  // all before it idle for less
    if (member->running == 0 && idle >= params_.idle.Patience(member->usual_gap)) {
      Yield(member, now);
    } else {
      at = member;
    }
  }
}

void WorkingSet::YieldBatch(const Member& to, TimePoint now) {
  if (to.cls == Class::kBatch) return;
  std::list<Where>& batch = entered_[static_cast<size_t>(Class::kBatch)];
  for (auto at = batch.end(); at != batch.begin() && !HasRoomFor(to);) {
    const Where member = *std::prev(at);
    if (member->running > 0) {
      --at;
    } else {
      Yield(member, now);
    }
  }
}

void WorkingSet::Shed(TimePoint now) {
  if (tokens_ <= limit_) return;
  uint64_t over = tokens_ - limit_;
  size_t staying = inside_.size();
  for (size_t c = kClasses; c-- > 0;) {
    for (auto at = entered_[c].end(); at != entered_[c].begin();) {
      if (over == 0 || staying <= 1) return;
      const Where member = *std::prev(at);
      over -= std::min(over, Frees(*member));
      --staying;
      if (member->running > 0) {
        --at;  // yields when its turn ends, if it is still among the last in
      } else {
        Yield(member, now);
      }
    }
  }
}

}  // namespace hidane::admission
