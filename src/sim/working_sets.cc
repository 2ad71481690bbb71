#include "sim/working_sets.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/rng.h"

namespace hidane::sim {
namespace {

// A Retry-After that every SDK keeps: none takes less than a second, some ignore a minute or more.
// Source: docs/simulator.md, "A storm".
constexpr Duration kPromiseMin = std::chrono::seconds(1), kPromiseMax = std::chrono::seconds(55);

}  // namespace

WorkingSets::WorkingSets(const admission::Params& params, uint32_t gateways, uint64_t kv_tokens,
                         bool session_ids)
    : quantum_turns_(params.quantum_turns), session_ids_(session_ids), waiting_(gateways) {
  for (uint32_t g = 0; g < gateways; ++g) {
    sets_.emplace_back(params).SetCapacity(kv_tokens / gateways, TimePoint{});
  }
}

uint64_t WorkingSets::KeyOf(const Request& request) const {
  if (request.conversation == 0) return 0;
  return session_ids_ ? Mix64(request.conversation) : request.prompt.k2();
}

uint32_t WorkingSets::OwnerOf(uint64_t key) const {
  return static_cast<uint32_t>(Mix64(key) % sets_.size());
}

// A session whose history was rewritten: nobody comes back to the old one.
void WorkingSets::Rename(uint64_t key, uint64_t k2) {
  const auto [at, fresh] = k2_.try_emplace(key, k2);
  if (!fresh && at->second != k2) left_.push_back({OwnerOf(key), at->second});
  at->second = k2;
}

admission::Verdict WorkingSets::Arrive(const Request& request, TimePoint now) {
  const prompt::Identity& prompt = request.prompt;
  const uint64_t key = KeyOf(request);
  const uint32_t owner = OwnerOf(key == 0 ? request.id : key);
  if (session_ids_ && key != 0) Rename(key, prompt.k2());
  const uint32_t prefix_tokens = prompt.BytesAt(prompt.k1_end);
  const uint32_t own_tokens = prompt.tokens - prefix_tokens;
  admission::Verdict verdict = sets_[owner].Arrive(
      {.conversation = key,
       .prefix = prompt.k1(),
       .prefix_tokens = prefix_tokens,
       .own_tokens = own_tokens,
       .tenant = request.tenant,
       .cls = request.batch ? admission::Class::kBatch : admission::Class::kDefault,
       .patience = request.patience > Duration{} ? request.patience : Duration::max()},
      now);
  const auto at = std::ranges::lower_bound(tenants_, request.tenant);
  if (at == tenants_.end() || *at != request.tenant) tenants_.insert(at, request.tenant);
  using Kind = admission::Verdict::Kind;
  if (verdict.kind == Kind::kRefuse) {
    verdict.expected_wait = std::clamp(verdict.expected_wait, kPromiseMin, kPromiseMax);
    return verdict;
  }
  open_.emplace(request.id, Open{owner, verdict.ticket, own_tokens + request.output_tokens});
  if (verdict.kind == Kind::kWait) waiting_[owner].emplace(verdict.ticket.value(), request.id);
  return verdict;
}

void WorkingSets::Leave(uint64_t id, TimePoint now) {
  const auto at = open_.find(id);
  if (at == open_.end()) return;
  const Open open = at->second;
  open_.erase(at);
  waiting_[open.owner].erase(open.ticket.value());
  sets_[open.owner].Done(open.ticket, open.own_tokens, now);
}

void WorkingSets::Tick(TimePoint now) {
  for (admission::WorkingSet& set : sets_) set.Tick(now);
}

std::vector<uint64_t> WorkingSets::TakeLetIn() {
  std::vector<uint64_t> ids;
  for (size_t owner = 0; owner < sets_.size(); ++owner) {
    for (const admission::Ticket ticket : sets_[owner].TakeLetIn()) {
      const auto at = waiting_[owner].find(ticket.value());
      ids.push_back(at->second);
      waiting_[owner].erase(at);
    }
  }
  return ids;
}

std::vector<WorkingSets::Left> WorkingSets::TakeLeft() {
  for (uint32_t owner = 0; owner < sets_.size(); ++owner) {
    for (const uint64_t key : sets_[owner].TakeLeft()) {
      const auto at = k2_.find(key);
      left_.push_back({owner, at == k2_.end() ? key : at->second});
      if (at != k2_.end()) k2_.erase(at);
    }
  }
  return std::exchange(left_, {});
}

double WorkingSets::Fairness(TimePoint now) const {
  double sum = 0, squares = 0;
  for (const uint32_t tenant : tenants_) {
    double inside = 0;
    for (const admission::WorkingSet& set : sets_) inside += set.PlaceSeconds(tenant, now);
    sum += inside;
    squares += inside * inside;
  }
  if (squares <= 0) return std::numeric_limits<double>::quiet_NaN();
  return sum * sum / (static_cast<double>(tenants_.size()) * squares);
}

void WorkingSets::FillRow(TimePoint now, Row& row) const {
  row.working_set = "on";
  row.quantum_turns = quantum_turns_;
  row.inside_fairness = Fairness(now);
}

}  // namespace hidane::sim
