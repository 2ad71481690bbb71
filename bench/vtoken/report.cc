#include "report.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "base/json_out.h"

namespace hidane::bench {
namespace {

constexpr size_t kArms = kMechanisms.size();

const Row& Arm(std::span<const Row> rows, Mechanism mechanism) {
  return rows[static_cast<size_t>(mechanism)];
}

/// Where doing less is as good, so that nobody need move a token.
std::string Winner(std::span<const Row> rows) {
  const Row& ours = Arm(rows, Mechanism::kOurs);
  if (Arm(rows, Mechanism::kBlockGranular).kept_choice >= 0.99) return "block-granular";
  if (ours.reduction() < 0.02) return "naive";
  return "";
}

std::string Percent(double share) {
  return share < 0 && share > -1e-9 ? "0.0" : fmt::format("{:.1f}", 100 * share);
}

std::string OrDash(double value, int digits) {
  return value < 0 ? "-" : fmt::format("{:.{}f}", value, digits);
}

void PrintLine(std::span<const Row> rows) {
  const Row& ours = Arm(rows, Mechanism::kOurs);
  const double bytes = ours.bytes_per_freed_block();
  fmt::print("{:<14} {:>4.1f} {:>4} | {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} | {:>6} {:>6} | ",
             ours.policy, ours.keep, ours.block_size, ours.naive_blocks, ours.blocks,
             ours.blocks_min, Arm(rows, Mechanism::kPageSizeOne).blocks, Percent(ours.reduction()),
             OrDash(100 * ours.reduction_expected, 1));
  fmt::print("{:>7.1f} {:>7.1f} {:>7.1f} {:>7} {:>7.1f} {:>7.1f} | ", ours.moves, ours.moves_bound,
             ours.free_tail_bound, OrDash(ours.moves_expected, 1),
             Arm(rows, Mechanism::kOrderPreserving).moves, Arm(rows, Mechanism::kOutOfPlace).moves);
  fmt::print("{:>7} {:>6.1f} {:>6.1f} | {:>6} {}{}\n", OrDash(bytes / 1024, 0), ours.plan_us_p50,
             ours.plan_us_p99, Percent(Arm(rows, Mechanism::kBlockGranular).kept_choice),
             Winner(rows), ours.exact ? "" : "  NOT THE BOUND");
}

std::string CpuInfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void NumberOrNull(JsonWriter& w, std::string_view key, double value) {
  w.Key(key);
  if (value < 0)
    w.Null();
  else
    w.Number(value);
}

void WriteRow(JsonWriter& w, const Row& row) {
  w.BeginObject().Field("mechanism", NameOf(row.mechanism)).Field("policy", row.policy);
  w.Field("keep", row.keep).Field("block_size", row.block_size);
  w.Field("blocks_per_seq", row.blocks).Field("blocks_min", row.blocks_min);
  w.Field("blocks_peak", row.peak_blocks).Field("blocks_naive", row.naive_blocks);
  w.Field("moves", row.moves).Field("moves_bound", row.moves_bound);
  w.Field("moves_free_tail_bound", row.free_tail_bound);
  NumberOrNull(w, "moves_expected", row.moves_expected);
  NumberOrNull(w, "plan_us_p50", row.plan_us_p50);
  NumberOrNull(w, "plan_us_p99", row.plan_us_p99);
  w.Field("reduction", row.reduction());
  NumberOrNull(w, "reduction_expected", row.reduction_expected);
  NumberOrNull(w, "bytes_per_freed_block", row.bytes_per_freed_block());
  w.Field("kept_choice", row.kept_choice);
  w.Key("itl_p99_ratio").Null();  // these two are the engine's
  w.Key("max_concurrency_ratio").Null();
  NumberOrNull(w, "output_error", row.output_error);
  w.EndObject();
}

void WriteSteady(JsonWriter& w, const SteadyRow& row) {
  w.BeginObject().Field("cap", row.at.cap).Field("period", row.at.period);
  w.Field("block_size", row.at.block_size).Field("moves", row.ours);
  w.Field("moves_bound", row.bound).Field("moves_expected", row.expected_ours);
  w.Field("moves_order_preserving", row.order_preserving);
  w.Field("moves_order_preserving_expected", row.expected_order);
  w.Field("moves_out_of_place", row.out_of_place).Field("blocks_per_seq", row.ours_blocks);
  w.Field("plan_us_p50", row.plan_us_p50).Field("plan_us_p99", row.plan_us_p99).EndObject();
}

void WriteQuality(JsonWriter& w, const QualityRow& row) {
  w.BeginObject().Field("policy", row.policy).Field("keep", row.keep);
  w.Field("prompt", row.prompt).Field("tokens", row.tokens).Field("ppl_full", row.ppl_full);
  NumberOrNull(w, "ppl_masked", row.ppl_masked);
  w.Field("ppl_virtual", row.ppl_virtual);
  NumberOrNull(w, "output_error", row.output_error);
  NumberOrNull(w, "permutation_error", row.permutation_error);
  w.Field("flips", row.flips).Field("flips_permuted", row.flips_permuted);
  w.Field("blocks", row.blocks).Field("blocks_full", row.blocks_full);
  NumberOrNull(w, "needle", row.needle);
  NumberOrNull(w, "needle_full", row.needle_full);
  w.Field("needle_tokens", row.needle_tokens);
  w.EndObject();
}

}  // namespace

void PrintArms(std::span<const Row> rows) {
  fmt::print("{:25}| {:^31} | {:^13} | {:^47} | {:^21} | block-granular\n", "",
             "blocks per sequence", "fewer than", "tokens moved per sequence",
             "ours: KiB per, plan");
  fmt::print("{:<14} {:>4} {:>4} | {:>7} {:>7} {:>7} {:>7} | {:>6} {:>6} | ", "victims", "keep",
             "B", "naive", "ours", "ceil", "page-1", "naive%", "calc.");
  fmt::print("{:>7} {:>7} {:>7} {:>7} {:>7} {:>7} | ", "ours", "bound", "free-t.", "calc.", "order",
             "o.o.pl.");
  fmt::print("{:>7} {:>6} {:>6} | {:>6} {}\n", "block", "p50 us", "p99 us", "keeps%",
             "as good without a move");
  for (size_t i = 0; i + kArms <= rows.size(); i += kArms) PrintLine(rows.subspan(i, kArms));
  fmt::print(
      "page-1 moves nothing and holds at most a block less than ours, in every row: it wins "
      "wherever\n"
      "the kernel reads single tokens as fast as blocks; an index entry per token is its price.\n");
}

void PrintSteady(std::span<const SteadyRow> rows) {
  fmt::print("{:>5} {:>6} {:>4} | {:>7} {:>7} {:>7} | ", "cap", "period", "B", "ours", "bound",
             "calc.");
  fmt::print("{:>7} {:>7} | {:>7} | {:>7} | {:>6} {:>6}\n", "order", "calc.", "o.o.pl.", "ratio",
             "p50 us", "p99 us");
  for (const SteadyRow& row : rows) {
    const double ratio = row.ours > 0 ? row.order_preserving / row.ours : -1;
    fmt::print("{:>5} {:>6} {:>4} | {:>7.1f} {:>7.1f} {:>7.1f} | ", row.at.cap, row.at.period,
               row.at.block_size, row.ours, row.bound, row.expected_ours);
    fmt::print("{:>7.1f} {:>7.1f} | {:>7.1f} | {:>7} | {:>6.1f} {:>6.1f}\n", row.order_preserving,
               row.expected_order, row.out_of_place, OrDash(ratio, 1), row.plan_us_p50,
               row.plan_us_p99);
  }
}

void PrintQuality(std::span<const QualityRow> rows) {
  fmt::print("{:<14} {:>4} {:>6} {:>6} | {:>7} {:>7} {:>7} | {:>8} {:>8} | {:>5} {:>5} | ",
             "policy", "keep", "prompt", "tokens", "full", "masked", "ours", "error", "permut.",
             "flips", "perm.");
  fmt::print("{:>6} {:>6} | {:>6} {:>6}\n", "blocks", "full", "needle", "full");
  for (const QualityRow& row : rows) {
    fmt::print("{:<14} {:>4.1f} {:>6} {:>6} | {:>7.3f} {:>7} {:>7.3f} | ", row.policy, row.keep,
               row.prompt, row.tokens, row.ppl_full, OrDash(row.ppl_masked, 3), row.ppl_virtual);
    const bool referenced = row.ppl_masked >= 0;
    fmt::print("{:>8} {:>8} | {:>5} {:>5} | ",
               referenced ? fmt::format("{:.1e}", row.output_error) : "-",
               referenced ? fmt::format("{:.1e}", row.permutation_error) : "-",
               OrDash(referenced ? row.flips : -1.0, 0),
               OrDash(referenced ? row.flips_permuted : -1.0, 0));
    fmt::print("{:>6.0f} {:>6.0f} | {:>6} {:>6}\n", row.blocks, row.blocks_full,
               OrDash(row.needle, 1), OrDash(row.needle_full, 1));
  }
  const QualityRow& first = rows[0];
  if (first.needle_tokens > 0)
    fmt::print("needles in prompts of {} tokens{}\n", first.needle_tokens,
               first.needle_full < 0.8 ? ", of which even full KV finds less than 80 %" : "");
}

std::string ToJson(const Results& results, uint64_t seed, const std::string& command) {
  const char* const commit = std::getenv("HIDANE_COMMIT");
  JsonWriter w;
  w.BeginObject().Key("meta").BeginObject().Field("tool", "bench/vtoken");
  w.Field("version", HIDANE_VERSION).Field("commit", commit != nullptr ? commit : "unknown");
  w.Field("compiler", __VERSION__).Field("cpu", CpuInfo("model name"));
  w.Field("cpu_flags", CpuInfo("flags")).Field("seed", seed).Field("command", command).EndObject();
  w.Key("rows").BeginArray();
  for (const Row& row : results.rows) WriteRow(w, row);
  w.EndArray().Key("steady").BeginArray();
  for (const SteadyRow& row : results.steady) WriteSteady(w, row);
  w.EndArray().Key("quality").BeginArray();
  for (const QualityRow& row : results.quality) WriteQuality(w, row);
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace hidane::bench
