#pragma once
#include <vector>

#include "base/rng.h"
#include "routing/placement.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {

inline Member MakeMember(uint32_t id, uint64_t capacity) {
  return {.id = WorkerId(id), .key = Mix64(id + 100), .capacity_tokens = capacity};
}

inline double NoWait(WorkerId) {
  return 0;
}

/// A table with all that it needs.
class Table {
 public:
  explicit Table(const Params& params)
      : accounts_(params), log_(params.replica), table_(params, accounts_, log_) {}
  PlacementTable* operator->() { return &table_; }

  /// One request, served at home; returns the prefix's homes.
  std::vector<WorkerId> See(uint64_t k1, uint32_t tokens, double prefill_s,
                            const PlacementTable::Wait& wait, TimePoint now) {
    const auto homes = table_.Homes(k1);
    const WorkerId worker =
        homes.empty() ? table_.Propose(k1, tokens, prefill_s, wait, now) : homes.front();
    table_.Serve(k1, tokens, worker, now);
    return Homes(k1);
  }
  std::vector<WorkerId> Homes(uint64_t k1) const {
    const auto homes = table_.Homes(k1);
    return {homes.begin(), homes.end()};
  }
  uint64_t assigned_tokens(WorkerId id) const { return accounts_.Find(id)->assigned(); }
  std::vector<uint64_t> assigned_tokens(uint32_t workers) const {
    std::vector<uint64_t> tokens;
    for (uint32_t w = 0; w < workers; ++w) tokens.push_back(assigned_tokens(WorkerId(w)));
    return tokens;
  }
  uint32_t prefixes_at(WorkerId id) const { return accounts_.Find(id)->homes; }
  std::vector<Delta> TakeDeltas() { return log_.Take(); }

 private:
  Accounts accounts_;
  DeltaLog log_;
  PlacementTable table_;
};

/// One request; returns the prefix's homes.
inline std::vector<WorkerId> See(Table& table, uint64_t k1, uint32_t tokens, double at_s = 0) {
  return table.See(k1, tokens, tokens / 10'000.0, NoWait, At(at_s));
}

}  // namespace hidane::routing
