#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_out.h"
#include "model/kernels.h"
#include "model/llama.h"
#include "model/model.h"
#include "model/timed_kernels.h"

/// Speed of whole steps: prefill in chunks, and decode of a batch, on the real model.
namespace hidane::model {
namespace {

constexpr const char* kUsage =
    "usage: model_bench [--model FILE] [--threads N] [--precision auto|f32|bf16] [--chunk N]\n"
    "                   [--cases prefill:512,decode:8,...] [--steps N] [--context N]\n"
    "                   [--weight-cache DIR] [--reference] [--profile] [--cpu] [--json]\n"
    "--cpu counts the process's CPU time: for a machine that is not quiet, with --threads 1\n";

struct Arguments {
  std::string model = HIDANE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  std::string cases = "prefill:512,prefill:2048,prefill:8000,decode:1,decode:8,decode:32";
  std::string precision = "auto", weight_cache;
  uint32_t threads = 2, chunk = 512, steps = 64, context = 128;
  bool reference = false, profile = false, cpu = false, json = false;
};

bool ParseNumber(const char* text, uint32_t& out) {
  return text != nullptr &&
         std::from_chars(text, text + std::strlen(text), out).ec == std::errc() && out > 0;
}

std::optional<Arguments> ParseArguments(char** argv) {
  Arguments a;
  for (char** at = argv + 1; *at != nullptr; ++at) {
    const std::string_view flag = *at;
    bool* const boolean = flag == "--reference" ? &a.reference
                          : flag == "--profile" ? &a.profile
                          : flag == "--cpu"     ? &a.cpu
                          : flag == "--json"    ? &a.json
                                                : nullptr;
    if (boolean != nullptr) {
      *boolean = true;
      continue;
    }
    const char* value = *++at;
    uint32_t* number = flag == "--threads"   ? &a.threads
                       : flag == "--chunk"   ? &a.chunk
                       : flag == "--steps"   ? &a.steps
                       : flag == "--context" ? &a.context
                                             : nullptr;
    std::string* text = flag == "--model"          ? &a.model
                        : flag == "--cases"        ? &a.cases
                        : flag == "--weight-cache" ? &a.weight_cache
                        : flag == "--precision"    ? &a.precision
                                                   : nullptr;
    if (value == nullptr || (number == nullptr && text == nullptr)) return std::nullopt;
    if (number != nullptr && !ParseNumber(value, *number)) return std::nullopt;
    if (text != nullptr) *text = value;
  }
  return a;
}

/// `n` sequences side by side, each with its own run of blocks.
class Batch {
 public:
  Batch(Model& model, uint32_t n, uint32_t tokens_max) : model_(model), tables_(n), lengths_(n) {
    const uint32_t blocks = tokens_max / model.kv_layout().block_size + 1;
    for (uint32_t s = 0; s < n; ++s) {
      for (uint32_t i = 0; i < blocks; ++i) tables_[s].push_back(BlockId(s * blocks + i));
    }
    logits_.resize(size_t{n} * model.info().vocab_size);
  }

  /// Gives every slot its memory, which a server's has long had and whose first use is a page
  /// fault.
  void Touch() {
    for (const std::vector<BlockId>& table : tables_) {
      const auto slots = static_cast<uint32_t>(table.size()) * model_.kv_layout().block_size;
      model_.LoadSlots(table, slots,
                       std::vector<std::byte>(slots * model_.kv_layout().token_bytes()));
    }
  }

  /// Appends `n` tokens to one sequence, in chunks; logits of the last.
  void Prefill(uint32_t seq, uint32_t n, uint32_t chunk) {
    for (uint32_t done = 0; done < n; done += chunk) {
      const uint32_t now = std::min(chunk, n - done);
      std::vector<TokenId> tokens(now);
      for (uint32_t i = 0; i < now; ++i) tokens[i] = Token(seq, done + i);
      const bool last = done + now == n;
      const SeqSlice slice{now, lengths_[seq], lengths_[seq], tables_[seq], last};
      const size_t size = last ? model_.info().vocab_size : 0;
      model_.Forward({tokens, {&slice, 1}}, std::span(logits_).first(size));
      lengths_[seq] += now;
    }
  }

  /// One token more for every sequence.
  void Decode() {
    std::vector<TokenId> tokens;
    std::vector<SeqSlice> slices;
    for (uint32_t s = 0; s < tables_.size(); ++s) {
      tokens.push_back(Token(s, lengths_[s]));
      slices.push_back({1, lengths_[s], lengths_[s], tables_[s], true});
      ++lengths_[s];
    }
    model_.Forward({tokens, slices}, logits_);
  }

 private:
  TokenId Token(uint32_t seq, uint32_t i) const {
    return static_cast<TokenId>((i * 7919 + seq * 104729 + 1000) % model_.info().vocab_size);
  }

  Model& model_;
  std::vector<std::vector<BlockId>> tables_;
  std::vector<uint32_t> lengths_;
  std::vector<float> logits_;
};

struct Row {
  std::string what;
  uint32_t batch, tokens;
  double tok_per_s;
};

Row RunPrefill(Model& model, const Arguments& a, uint32_t n, OpTimes& times) {
  Batch(model, 1, a.chunk).Prefill(0, std::min(a.chunk, n), a.chunk);  // warm
  Batch batch(model, 1, n);
  batch.Touch();
  times.seconds = {};
  const double start = times.watch.Now();
  batch.Prefill(0, n, a.chunk);
  return {"prefill", 1, n, n / (times.watch.Now() - start)};
}

Row RunDecode(Model& model, const Arguments& a, uint32_t n, OpTimes& times) {
  Batch batch(model, n, a.context + a.steps + 1);
  for (uint32_t s = 0; s < n; ++s) batch.Prefill(s, a.context, a.chunk);
  batch.Decode();  // warm
  times.seconds = {};
  const double start = times.watch.Now();
  for (uint32_t i = 0; i < a.steps; ++i) batch.Decode();
  return {"decode", n, a.steps, n * a.steps / (times.watch.Now() - start)};
}

void Print(const Row& row, const Arguments& a, const char* weights) {
  if (!a.json) {
    fmt::print("{:8} batch {:3} tokens {:5} {:10.1f} tok/s\n", row.what, row.batch, row.tokens,
               row.tok_per_s);
  } else {
    JsonWriter w;
    w.BeginObject().Field("engine", "hidane").Field("weights", weights).Field("case", row.what);
    w.Field("batch", row.batch).Field("tokens", row.tokens).Field("tok_per_s", row.tok_per_s);
    w.Field("threads", a.threads).EndObject();
    fmt::print("{}\n", w.str());
  }
  std::fflush(stdout);
}

int Run(const Arguments& a) {
  ModelOptions options{.kv_blocks = 4096, .threads = a.threads, .step_tokens_max = a.chunk};
  options.precision = a.precision == "f32"    ? Precision::kF32
                      : a.precision == "bf16" ? Precision::kBf16
                                              : Precision::kAuto;
  options.weight_cache_dir = a.weight_cache;
  options.reference_kernels = a.reference;
  auto kernels = KernelsFor(a.model, options);
  if (!kernels) {
    fmt::print(stderr, "model_bench: {}\n", kernels.error().what);
    return 2;
  }
  OpTimes times{.watch = {a.cpu}};
  const char* weights = (*kernels)->bf16() ? "bf16" : "f32";
  if (a.profile) *kernels = std::make_unique<TimedKernels>(std::move(*kernels), times);
  auto model = LoadLlama(a.model, options, std::move(*kernels));
  if (!model) {
    fmt::print(stderr, "model_bench: {}\n", model.error().what);
    return 3;
  }
  for (std::string_view rest = a.cases; !rest.empty();) {
    const std::string one(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const size_t colon = one.find(':');
    uint32_t n = 0;
    const bool prefill = one.starts_with("prefill:");
    if (!(prefill || one.starts_with("decode:")) || !ParseNumber(one.c_str() + colon + 1, n)) {
      fmt::print(stderr, "model_bench: no case \"{}\"\n", one);
      return 2;
    }
    const Row row = prefill ? RunPrefill(**model, a, n, times) : RunDecode(**model, a, n, times);
    Print(row, a, weights);
    if (a.profile) fmt::print("{}", times.Table());
  }
  return 0;
}

}  // namespace
}  // namespace hidane::model

int main(int, char** argv) {
  const auto arguments = hidane::model::ParseArguments(argv);
  if (!arguments) {
    fmt::print(stderr, "{}", hidane::model::kUsage);
    return 2;
  }
  return hidane::model::Run(*arguments);
}
