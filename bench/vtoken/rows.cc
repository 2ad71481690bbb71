#include "rows.h"

#include <cmath>

#include "timing.h"

namespace hidane::bench {
namespace {

/// Adds what `mechanism` makes of one sequence to its row's sums.
void AddOutcome(std::span<const vtoken::LiveSet> units, Row& row) {
  const Outcome outcome = Apply(row.mechanism, units);
  row.blocks += outcome.blocks;
  row.peak_blocks += outcome.peak_blocks;
  row.moves += static_cast<double>(outcome.moves) / static_cast<double>(units.size());
  row.kept_choice += outcome.kept_choice;
}

/// As AddOutcome for the planner, held against the formula.
void AddPlan(std::span<const vtoken::LiveSet> units, uint32_t repeats,
             vtoken::RelocationPlanner& planner, Timings& timings, Row& row) {
  vtoken::RelocationPlan plan;
  for (uint32_t i = 0; i < repeats; ++i)
    timings.Time([&] { planner.Plan({.units = units}, plan); });
  const auto n = static_cast<double>(units.size());
  const uint32_t b = units[0].block_size();
  row.blocks += static_cast<double>(plan.kept.size());
  row.peak_blocks += Apply(Mechanism::kNaiveEvict, units).blocks;
  row.moves += static_cast<double>(plan.moves.size()) / n;
  row.kept_choice += 1;
  const bool exact = plan.kept.size() == (units[0].count() + b - 1) / b &&
                     plan.moves.size() == MovesBound(units, false);
  row.exact = row.exact && exact;
}

}  // namespace

vtoken::LiveSet FromMap(std::span<const uint8_t> map, uint32_t block_size) {
  vtoken::LiveSet set(block_size);
  set.AssignDense(static_cast<uint32_t>(map.size()));
  for (uint32_t i = 0; i < map.size(); ++i)
    if (map[i] == 0) set.Kill(i);
  return set;
}

std::vector<Row> RunArms(const std::string& policy, double keep,
                         std::span<const Sequence> sequences, uint32_t repeats) {
  Row base{
      .policy = policy, .keep = keep, .block_size = sequences[0][0].block_size(), .kept_choice = 0};
  const auto n = static_cast<double>(sequences.size());
  for (const Sequence& units : sequences) {
    const double b = base.block_size, heads = static_cast<double>(units.size());
    base.blocks_min += std::ceil(units[0].count() / b) / n;
    base.naive_blocks += Apply(Mechanism::kNaiveEvict, units).blocks / n;
    base.moves_bound += static_cast<double>(MovesBound(units, false)) / heads / n;
    base.free_tail_bound += static_cast<double>(MovesBound(units, true)) / heads / n;
  }
  std::vector<Row> rows;
  vtoken::RelocationPlanner planner;
  for (const Mechanism mechanism : kMechanisms) {
    Row row = base;
    row.mechanism = mechanism;
    Timings timings;
    for (const Sequence& units : sequences)
      if (mechanism == Mechanism::kOurs)
        AddPlan(units, repeats, planner, timings, row);
      else
        AddOutcome(units, row);
    for (double* sum : {&row.blocks, &row.peak_blocks, &row.moves, &row.kept_choice}) *sum /= n;
    if (mechanism == Mechanism::kOurs) {
      row.plan_us_p50 = timings.Us(0.5);
      row.plan_us_p99 = timings.Us(0.99);
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace hidane::bench
