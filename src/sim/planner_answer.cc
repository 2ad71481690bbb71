#include "sim/planner_answer.h"

#include <fmt/format.h>

#include <algorithm>

namespace hidane::sim {
namespace {

const PlanRow* Find(std::span<const PlanRow> rows, std::string_view policy) {
  const auto at = std::ranges::find(rows, policy, &PlanRow::policy);
  return at == rows.end() ? nullptr : &*at;
}

std::string Replicas(uint32_t n) {
  return n == 1 ? "1 replica" : fmt::format("{} replicas", n);
}

/// Seconds until the first token of a prompt alone on an engine.
double AloneSeconds(const PlanDemand& demand, const GpuSetup& gpu, bool cached) {
  const uint32_t end = demand.static_tokens + demand.own_tokens;
  return gpu.prefill_overhead_s +
         StepModel(gpu).TokenSeconds(cached ? demand.static_tokens : 0, end);
}

/// Why round robin does as well.
std::string WhyNot(const PlanTrial& robin, const PlanDemand& demand, const GpuSetup& gpu) {
  constexpr double kAll = 0.9;    // of what could hit
  constexpr double kShort = 0.5;  // of a request's prompt
  const double prompt = demand.static_tokens + demand.own_tokens;
  if (robin.row.hit_ratio >= kAll * demand.static_tokens / prompt) {
    return fmt::format(
        "Every replica keeps the static prompts of all {} tenants: they take {:.0f} % of its KV "
        "memory.",
        demand.tenants, PrefixShare(demand, gpu, 1) * 100);
  }
  if (demand.static_tokens < kShort * prompt) {
    return fmt::format(
        "Static prompts are short: an uncached prompt takes {:.0f} ms alone, a cached one {:.0f} "
        "ms.",
        AloneSeconds(demand, gpu, false) * 1e3, AloneSeconds(demand, gpu, true) * 1e3);
  }
  return "The load sets the number of replicas, not the caches.";
}

/// Round robin is enough with as few, or prefix is not at all.
std::string NoNeed(const PlanRow& robin, const PlanRow& prefix, const PlanDemand& demand,
                   const GpuSetup& gpu, uint32_t most) {
  const uint32_t needs = robin.least->replicas;
  std::string than = ", as prefix does";
  if (!prefix.least) {
    than = fmt::format(", and {} are not enough for prefix", most);
  } else if (prefix.least->replicas > needs) {
    than = fmt::format(", prefix {}", prefix.least->replicas);
  }
  return fmt::format("You don't need this: round_robin needs {}{}. {}", Replicas(needs), than,
                     WhyNot(*robin.least, demand, gpu));
}

std::string Against(const PlanRow& robin, uint32_t prefix, const PlanDemand& demand,
                    const GpuSetup& gpu, uint32_t most) {
  if (robin.least) {
    const uint32_t needs = robin.least->replicas, saved = needs - prefix;
    return fmt::format("prefix needs {} where round_robin needs {}: it saves {} ({:.0f} %).",
                       Replicas(prefix), needs, saved, 100.0 * saved / needs);
  }
  std::string text = fmt::format("prefix needs {}; round_robin does not meet the goal with {}",
                                 Replicas(prefix), most);
  if (robin.sustains) {
    text += fmt::format(", and needs {} to keep up with the rate at all", robin.sustains->replicas);
  }
  return text + fmt::format(" (an uncached prompt alone takes {:.2f} s).",
                            AloneSeconds(demand, gpu, false));
}

/// Other policies that do with as few.
std::string AsGood(std::span<const PlanRow> rows, uint32_t prefix) {
  std::string names;
  for (const PlanRow& row : rows) {
    if (row.policy == "prefix" || row.policy == "round_robin") continue;
    if (!row.least || row.least->replicas > prefix) continue;
    names += (names.empty() ? "" : ", ") + row.policy;
  }
  if (names.empty()) return "";
  return fmt::format(" With one gateway as few are enough for: {}.", names);
}

}  // namespace

double PrefixShare(const PlanDemand& demand, const GpuSetup& gpu, uint32_t replicas) {
  return static_cast<double>(demand.tenants) * demand.static_tokens /
         (static_cast<double>(gpu.kv_capacity_tokens) * replicas);
}

std::string PlanAnswer(std::span<const PlanRow> rows, const PlanDemand& demand, const GpuSetup& gpu,
                       uint32_t most) {
  const PlanRow *prefix = Find(rows, "prefix"), *robin = Find(rows, "round_robin");
  if (prefix == nullptr || robin == nullptr) return "";
  if (!prefix->least && !robin->least) {
    return fmt::format(
        "{} are not enough: a prompt whose static part is cached takes {:.0f} ms "
        "alone, and TTFT p99 must be within {:.0f} ms.",
        Replicas(most), AloneSeconds(demand, gpu, true) * 1e3, Seconds(demand.slo_ttft) * 1e3);
  }
  if (!prefix->least || (robin->least && robin->least->replicas <= prefix->least->replicas)) {
    return NoNeed(*robin, *prefix, demand, gpu, most);
  }
  const uint32_t needs = prefix->least->replicas;
  return Against(*robin, needs, demand, gpu, most) + AsGood(rows, needs);
}

}  // namespace hidane::sim
