#include "admission/fair_line.h"

#include <tuple>

namespace hidane::admission {

void FairLine::Join(Members& from, Members::iterator member, TimePoint now) {
  member->since = now;
  line_.splice(line_.end(), from, member);
  ++waiting_[static_cast<size_t>(member->cls)];
  shares_.Waits(*member->tenant, 1, now);
}

void FairLine::Leave(Members::iterator member, Members& to, TimePoint now) {
  to.splice(to.begin(), line_, member);
  --waiting_[static_cast<size_t>(member->cls)];
  shares_.Waits(*member->tenant, -1, now);
}

void FairLine::LetIn(Members::iterator member, Members& to, TimePoint now) {
  ++places_given_;
  shares_.Served(*member->tenant, now);
  Leave(member, to, now);
}

FairLine::Members::iterator FairLine::Next(TimePoint now) {
  if (line_.empty()) return line_.end();
  if ((places_given_ + 1) % oldest_every_ == 0) return line_.begin();
  auto best = line_.end();
  double least = 0;
  for (auto at = line_.begin(); at != line_.end(); ++at) {
    const double service = shares_.Service(*at->tenant, now);
    if (best == line_.end() || std::tie(at->cls, service) < std::tie(best->cls, least)) {
      best = at;
      least = service;
    }
  }
  return best;
}

FairLine::Ahead FairLine::AheadOf(const Member& member) {
  uint32_t own_rank = 0;
  for (Member& other : line_) {
    if (&other == &member) break;
    own_rank += other.cls == member.cls && other.tenant == member.tenant;
  }
  for (Member& other : line_) other.tenant->rank = 0;
  Ahead ahead;
  bool earlier = true;
  for (Member& other : line_) {
    if (&other == &member) {
      earlier = false;
      continue;
    }
    bool goes_first = other.cls < member.cls;
    if (other.cls == member.cls) {
      const uint32_t rank = other.tenant->rank++;
      goes_first = rank < own_rank || (rank == own_rank && earlier);
      if (other.tenant == member.tenant) goes_first = earlier;
    }
    if (!goes_first) continue;
    ++ahead.members;
    ahead.tokens += other.context();
  }
  return ahead;
}

bool FairLine::WaitsFor(Class cls) const {
  for (size_t c = 0; c <= static_cast<size_t>(cls); ++c) {
    if (waiting_[c] > 0) return true;
  }
  return false;
}

}  // namespace hidane::admission
