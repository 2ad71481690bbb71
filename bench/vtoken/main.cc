// What becomes of a policy's victims: eight mechanisms on the same ones.
//
//   vtoken_bench [--json FILE] [--quick] [--model GGUF --text FILE]
//
// With a model also the shipped policies' victims, and what becomes of the answers.
// Exit code 1 if ours isn't at its bounds in every row, or moves more than a fifth of what
// order-preserving packing does at cap 2,048 and 128 evictions a round.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "occupancy.h"
#include "real.h"
#include "report.h"
#include "rows.h"
#include "steady.h"

namespace hidane::bench {
namespace {

constexpr uint64_t kSeed = 1;
constexpr uint32_t kTokens = 8192;

std::vector<Row> Synthetic(bool quick) {
  std::vector<Row> rows;
  const std::vector<double> keeps =
      quick ? std::vector{0.3, 0.5, 0.7} : std::vector{0.3, 0.4, 0.5, 0.6, 0.7};
  for (const Shape shape : kShapes)
    for (const double keep : keeps)
      for (const uint32_t block_size : {16u, 32u, 64u, 128u}) {
        std::vector<Sequence> sequences;
        for (uint32_t i = 0; i < (quick ? 16u : 64u); ++i) {
          const auto map = MakeLiveMap(shape, kTokens, keep, Mix64(kSeed + i));
          sequences.push_back({FromMap(map, block_size)});
        }
        for (Row& row : RunArms(std::string(NameOf(shape)), keep, sequences, 20)) {
          row.reduction_expected = Reduction(shape, keep, block_size);
          row.moves_expected = ExpectedMoves(shape, keep, block_size, kTokens);
          rows.push_back(row);
        }
      }
  return rows;
}

std::vector<SteadyRow> Steady(bool quick) {
  std::vector<SteadyRow> rows;
  for (const auto& [cap, period] : {std::pair{2048u, 128u},
                                    {2048u, 64u},
                                    {2048u, 16u},
                                    {2048u, 1u},
                                    {1024u, 128u},
                                    {672u, 32u},
                                    {2048u, 2048u}})
    for (const uint32_t block_size : {16u, 128u})
      rows.push_back(RunSteady({cap, period, block_size}, quick ? 50 : 300, kSeed));
  return rows;
}

/// False, with a line on stderr, if a promise of the table is broken.
bool Holds(const std::vector<Row>& rows, const std::vector<SteadyRow>& steady) {
  bool holds = true;
  for (const Row& row : rows)
    if (!row.exact) {
      holds = false;
      fmt::print(stderr, "not at its bounds: {} keep {} B {}\n", row.policy, row.keep,
                 row.block_size);
    }
  for (const SteadyRow& row : steady)
    if (row.ours != row.bound ||
        (row.at.cap == 2048 && row.at.period == 128 && row.order_preserving < 5 * row.ours)) {
      holds = false;
      fmt::print(stderr, "steady decode: cap {} period {} B {}: {} moves\n", row.at.cap,
                 row.at.period, row.at.block_size, row.ours);
    }
  return holds;
}

struct Options {
  bool quick = false;
  std::string json_file, command = "vtoken_bench";
  RealOptions real;  // without a model: synthetic victims only
};

/// Adds the real model's rows. False, with a line on stderr, when it can't.
bool AddReal(const Options& options, Results& results) {
  auto real = RunReal(options.real);
  if (!real) {
    fmt::print(stderr, "vtoken_bench: {}\n", real.error().what);
    return false;
  }
  fmt::print("\nVictims of the policies on {}, after the prompt\n", options.real.model);
  PrintArms(real->rows);
  fmt::print("\nAnswers: perplexity, largest difference of logits, changed tokens, needles\n");
  PrintQuality(real->quality);
  results.rows.insert(results.rows.end(), real->rows.begin(), real->rows.end());
  results.quality = std::move(real->quality);
  for (Row& row : results.rows)
    for (const QualityRow& quality : results.quality)
      if (row.mechanism == Mechanism::kOurs && row.block_size == 16 && row.keep == quality.keep &&
          row.policy == quality.policy && quality.output_error >= 0)
        row.output_error = quality.output_error;
  return true;
}

int Run(const Options& options) {
  Results results{.rows = Synthetic(options.quick)};
  fmt::print("One shot: {} tokens, the policy's victims go at once; ", kTokens);
  fmt::print("calc. = expected before measuring (docs/vtoken.md)\n");
  PrintArms(results.rows);
  results.steady = Steady(options.quick);
  fmt::print("\nDecoding at a cap: tokens moved per round of `period` uniform victims\n");
  PrintSteady(results.steady);
  if (!options.real.model.empty() && !AddReal(options, results)) return 3;
  if (!options.json_file.empty()) {
    const std::string json = ToJson(results, kSeed, options.command);
    if (options.json_file == "-")
      fmt::print("{}\n", json);
    else
      std::ofstream(options.json_file) << json << '\n';
  }
  return Holds(results.rows, results.steady) ? 0 : 1;
}

}  // namespace
}  // namespace hidane::bench

int main(int argc, char** argv) {
  hidane::bench::Options options;
  options.quick = std::getenv("QUICK") != nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    options.command += " " + std::string(arg);
    std::string* const value = arg == "--json"    ? &options.json_file
                               : arg == "--model" ? &options.real.model
                               : arg == "--text"  ? &options.real.text
                                                  : nullptr;
    if (value != nullptr && i + 1 < argc) {
      *value = argv[++i];
      options.command += " " + *value;
    } else if (arg == "--quick") {
      options.quick = true;
    } else {
      fmt::print(stderr,
                 "usage: vtoken_bench [--json FILE] [--quick] [--model GGUF --text FILE]\n");
      return 2;
    }
  }
  options.real.quick = options.quick;
  return hidane::bench::Run(options);
}
