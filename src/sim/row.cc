#include "sim/row.h"

#include <cmath>
#include <iterator>

namespace hidane::sim {
namespace {

constexpr RowNumber kNumbers[] = {
    {"requests", &Row::requests},
    {"errors", &Row::errors},
    {"hit_ratio", &Row::hit_ratio},
    {"hit_ratio_believed", &Row::hit_ratio_believed},
    {"hit_ratio_bound", &Row::hit_ratio_bound},
    {"ttft_p50_s", &Row::ttft_p50_s},
    {"ttft_p99_s", &Row::ttft_p99_s},
    {"admission_wait_mean_s", &Row::admission_wait_mean_s},
    {"admission_wait_p99_s", &Row::admission_wait_p99_s},
    {"ttft_with_wait_p99_s", &Row::ttft_with_wait_p99_s},
    {"quantum_turns", &Row::quantum_turns},
    {"inside_fairness", &Row::inside_fairness},
    {"makespan_bound_s", &Row::makespan_bound_s},
    {"tpot_p50_s", &Row::tpot_p50_s},
    {"recompute_share", &Row::recompute_share},
    {"static_prefill_share", &Row::static_prefill_share},
    {"goodput_rps", &Row::goodput_rps},
    {"requests_per_s", &Row::requests_per_s},
    {"load_imbalance", &Row::load_imbalance},
    {"load_imbalance_bound", &Row::load_imbalance_bound},
    {"mean_homes", &Row::mean_homes},
    {"recovery_s", &Row::recovery_s},
    {"surge_rps", &Row::surge_rps},
    {"after_rps", &Row::after_rps},
    {"answered_share", &Row::answered_share},
    {"sends_per_request", &Row::sends_per_request},
    {"refresh_share", &Row::refresh_share},
    {"keys_moved", &Row::keys_moved},
    {"keys_lost", &Row::keys_lost},
    {"decisions_per_s", &Row::decisions_per_s},
    {"index_bytes", &Row::index_bytes},
    {"index_bytes_per_entry", &Row::index_bytes_per_entry},
};

bool OfTheMachine(double Row::* value) {
  return value == &Row::decisions_per_s || value == &Row::index_bytes ||
         value == &Row::index_bytes_per_entry;
}

void AppendFields(const Row& row, JsonWriter& out, bool wall) {
  out.Field("scenario", row.scenario).Field("fleet", row.fleet).Field("phase", row.phase);
  out.Field("guard", row.guard).Field("working_set", row.working_set).Field("policy", row.policy);
  out.Field("gateways", row.gateways).Field("deltas", row.deltas);
  out.Field("keep_warm", row.keep_warm);
  for (const auto& [key, value] : kNumbers) {
    if (wall || !OfTheMachine(value)) out.Field(key, row.*value);
  }
}

/// Student's t for a two-sided 95 % interval. Source: the usual table.
double StudentT(size_t degrees) {
  constexpr double kT[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  constexpr double kMany = 2.0;
  return degrees <= std::size(kT) ? kT[degrees - 1] : kMany;
}

}  // namespace

std::span<const RowNumber> RowNumbers() {
  return kNumbers;
}

void AppendJson(const Row& row, JsonWriter& out, bool wall) {
  out.BeginObject();
  AppendFields(row, out, wall);
  out.EndObject();
}

Summary Summarize(std::span<const Row> runs) {
  Summary s{.mean = runs.front(), .half_width = {}, .seeds = static_cast<uint32_t>(runs.size())};
  const auto n = static_cast<double>(runs.size());
  for (const auto& [key, value] : kNumbers) {
    double sum = 0, squares = 0;
    for (const Row& run : runs) sum += run.*value;
    const double mean = sum / n;
    for (const Row& run : runs) squares += (run.*value - mean) * (run.*value - mean);
    s.mean.*value = mean;
    s.half_width.*value =
        runs.size() < 2 ? kUnknown : StudentT(runs.size() - 1) * std::sqrt(squares / (n - 1) / n);
  }
  return s;
}

void AppendJson(const Summary& summary, JsonWriter& out) {
  out.BeginObject();
  AppendFields(summary.mean, out, true);
  out.Field("seeds", summary.seeds);
  if (summary.seeds > 1) {
    out.Key("half_width").BeginObject();
    for (const auto& [key, value] : kNumbers) out.Field(key, summary.half_width.*value);
    out.EndObject();
  }
  out.EndObject();
}

}  // namespace hidane::sim
