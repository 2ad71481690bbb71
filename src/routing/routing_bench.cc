// What routing costs a request: reading its body, deciding, and the index behind it.
//
//   routing_bench [--json FILE] [--quick]
//
// Rows as in the contract of `make bench-routing`: case, workers, blocks, p50_ns, p99_ns,
// ops_per_s, bytes_per_s, bytes_per_entry.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/json_out.h"
#include "base/rng.h"
#include "prompt/body_reader.h"
#include "prompt/canonical.h"
#include "prompt/chain.h"
#include "routing/cache_index.h"
#include "routing/router.h"
#include "routing/routing_test_util.h"

namespace hidane::routing {
namespace {

constexpr uint64_t kSeed = 1;

struct Row {
  std::string name;
  size_t workers = 0;
  size_t blocks = 0;
  double p50_ns = 0;
  double p99_ns = 0;
  double ops_per_s = 0;
  double bytes_per_s = 0;
  double bytes_per_entry = 0;
};

// Times single calls of `op`; `prepare(i)` and `settle(i)` run outside the clock.
class Samples {
 public:
  void Time(const std::function<void()>& op) {
    const auto begin = std::chrono::steady_clock::now();
    op();
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
    ns_.push_back(taken.count());
  }
  Row Summary(std::string name) {
    std::ranges::sort(ns_);
    Row row{.name = std::move(name)};
    row.p50_ns = ns_[ns_.size() / 2];
    row.p99_ns = ns_[ns_.size() * 99 / 100];
    double sum = 0;
    for (const double ns : ns_) sum += ns;
    row.ops_per_s = 1e9 * static_cast<double>(ns_.size()) / sum;
    return row;
  }

 private:
  std::vector<double> ns_;
};

// The tools of a public MCP server: 117 functions, 123 KB. Empty when the traces are absent.
std::string ReadTools() {
  const char* const env = std::getenv("HIDANE_TRACES");
  const std::string traces = env != nullptr ? env : HIDANE_SOURCE_DIR "/../shared/traces";
  const std::string path = traces + "/tools/github_mcp_117_tools_openai.json.gz";
  if (!std::ifstream(path)) {
    fmt::print("skipped: no {} (set HIDANE_TRACES)\n", path);
    return {};
  }
  std::string text;
  FILE* const pipe = popen(("gzip -dc '" + path + "'").c_str(), "r");
  if (pipe == nullptr) return {};
  char buffer[1 << 16];
  while (const size_t n = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  pclose(pipe);
  return text;
}

void BenchBody(size_t rounds, std::vector<Row>& rows) {
  const std::string tools = ReadTools();
  if (tools.empty()) return;
  std::string body =
      R"({"model":"m","stream":true,"messages":[{"role":"system","content":"You help."},)"
      R"({"role":"user","content":"List my open pull requests."}],"tools":)" +
      tools + "}";
  const std::string_view json(body.data(), body.size());
  body.reserve(body.size() + prompt::BodyReader::kPadding);
  const std::string_view view(body.data(), json.size());

  prompt::BodyReader reader;
  prompt::Body out;
  prompt::CanonicalBuffer text;
  prompt::Identity id;
  Samples read;
  Samples canonical;
  Samples chain;
  for (size_t i = 0; i < rounds; ++i) {
    read.Time([&] {
      if (!reader.Read(prompt::Api::kChat, view, body.capacity(), {}, out)) std::abort();
    });
    canonical.Time([&] {
      text.Clear();
      (void)text.AppendValue(view);
    });
    chain.Time([&] {
      id.Clear();
      prompt::AppendPart(text.view(), id);
    });
  }
  const auto add = [&](Samples& samples, const char* name) {
    Row row = samples.Summary(name);
    row.blocks = out.identity.size();
    row.bytes_per_s = static_cast<double>(view.size()) / row.p50_ns * 1e9;
    rows.push_back(row);
  };
  add(read, "read_body");
  add(canonical, "canonicalise");
  add(chain, "chain");
}

enum class Asks {
  kOnce,        // a prompt of its own behind the prefix
  kFirstSight,  // with a prefix of its own too, once the clock runs
  kSettles,     // the second turn of a conversation that no gateway saw before
  kTurns        // conversations go on for 16 turns
};
struct Scenario {
  const char* name;
  uint32_t static_tokens;      // below the short bound every worker is a home
  double prefixes_per_worker;  // 0: one for all
  Asks asks;
};
constexpr Scenario kScenarios[] = {{"decide_home", 27'008, 1, Asks::kOnce},
                                   {"decide_universal", 27'008, 0, Asks::kOnce},
                                   {"decide_short_k1", 320, 4, Asks::kOnce},
                                   {"decide_first_sight", 2'048, 4, Asks::kFirstSight},
                                   {"decide_turn", 27'008, 1, Asks::kTurns},
                                   {"decide_settle", 27'008, 1, Asks::kSettles},
                                   {"decide_settle_universal", 27'008, 0, Asks::kSettles}};

// Requests of one scenario against a Router in steady state: everything has grown and evicts.
class Decisions {
 public:
  Decisions(const Scenario& scenario, uint32_t workers, uint64_t blocks_per_worker)
      : scenario_(scenario),
        workers_(workers),
        tenants_(
            std::max<uint64_t>(1, static_cast<uint64_t>(scenario.prefixes_per_worker * workers))),
        turns_(4 * workers) {
    const uint64_t capacity = blocks_per_worker * kTestBlockTokens;
    for (uint32_t w = 0; w < workers; ++w) router_.PutWorker(TestWorker(w, capacity), now_);
    // Filled twice over before the clock runs.
    const uint64_t fill = workers * blocks_per_worker / 4 + tenants_;
    for (uint64_t i = 0; i < fill; ++i) {
      Decision d = *router_.Route({.identity = Prompt(i % tenants_)}, now_);
      router_.OnFirstByte(d.ticket, now_);
      Settle(d);
    }
  }

  Row Time(size_t requests) {
    Samples samples;
    for (size_t i = 0; i < requests; ++i) {
      const bool first_sight = scenario_.asks == Asks::kFirstSight;
      const uint64_t tenant = first_sight ? tenants_ + sent_ : rng_.Below(tenants_);
      ++sent_;
      const prompt::Identity identity = Prompt(tenant);
      std::optional<Decision> decision;
      samples.Time([&] { decision = *router_.Route({.identity = identity}, now_); });
      router_.OnFirstByte(decision->ticket, now_);
      open_.push_back(std::move(*decision));
      if (open_.size() <= 4 * workers_) continue;
      std::swap(open_[rng_.Below(open_.size())], open_.back());
      Settle(open_.back());
      open_.pop_back();
    }
    Row row = samples.Summary(scenario_.name);
    row.workers = workers_;
    return row;
  }

  // Blocks in the indexes and bytes for each.
  void Measure(Row& row) const {
    size_t bytes = 0;
    for (const WorkerView& worker : router_.Workers(now_)) {
      row.blocks += worker.indexed_blocks;
      bytes += worker.index_bytes;
    }
    row.bytes_per_entry = static_cast<double>(bytes) / static_cast<double>(row.blocks);
  }

 private:
  prompt::Identity Prompt(uint64_t tenant) {
    if (scenario_.asks == Asks::kTurns) return Turn();
    std::vector<TestPart> parts = {{Mix64(tenant), scenario_.static_tokens}, {rng_.Next(), 512}};
    if (scenario_.asks == Asks::kSettles) parts.push_back({rng_.Next(), 512});
    return MakePrompt(parts);
  }
  // The next one of some conversation, or the first of its successor.
  prompt::Identity Turn() {
    constexpr uint32_t kTurns = 16;
    const uint64_t talk = rng_.Below(turns_.size());
    const uint32_t turn = turns_[talk]++;
    const uint64_t seed = Mix64(talk + turn / kTurns * turns_.size());
    std::vector<TestPart> parts = {{Mix64(talk % tenants_), scenario_.static_tokens}, {seed, 512}};
    for (uint32_t i = 1; i <= turn % kTurns; ++i) parts.push_back({seed + i, 512});
    return MakePrompt(parts);
  }
  // Answered in no time, which teaches no rates: the fleet stays as it was set up.
  void Settle(const Decision& decision) {
    now_ += FromSeconds(0.001);
    router_.OnDone(decision.ticket, End::kComplete, now_);
  }

  Scenario scenario_;
  size_t workers_;
  uint64_t tenants_;
  std::vector<uint32_t> turns_;  // of each conversation
  Router router_;
  TimePoint now_ = At(1);
  Rng rng_{kSeed};
  uint64_t sent_ = 0;
  std::vector<Decision> open_;  // some requests are always under way
};

// The cases take turns, and a row is its calmest turn: on a shared machine whole seconds are slow,
// which says nothing about the code.
void BenchDecisions(uint32_t workers, uint64_t blocks_per_worker, size_t requests,
                    std::vector<Row>& rows) {
  constexpr size_t kTurns = 5;
  std::deque<Decisions> cases;
  for (const Scenario& s : kScenarios) cases.emplace_back(s, workers, blocks_per_worker);
  std::vector<Row> best(cases.size());
  for (size_t turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < cases.size(); ++i) {
      const size_t share = kScenarios[i].asks == Asks::kFirstSight ? 10 : 1;
      Row row = cases[i].Time(requests / kTurns / share);
      if (turn == 0 || row.p50_ns < best[i].p50_ns) best[i] = std::move(row);
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].Measure(best[i]);
    rows.push_back(std::move(best[i]));
  }
}

void BenchIndex(size_t prompts, std::vector<Row>& rows) {
  constexpr uint32_t kStaticBlocks = 420;  // 27k tokens
  constexpr uint32_t kOwnBlocks = 12;
  constexpr uint64_t kTenants = 100;
  CacheIndex index(kTenants * kStaticBlocks * kTestBlockTokens * 2);
  Rng rng(kSeed);
  std::vector<prompt::Identity> all;
  for (size_t i = 0; i < prompts; ++i) {
    all.push_back(MakePrompt({{Mix64(rng.Below(kTenants)), kStaticBlocks * kTestBlockTokens},
                              {rng.Next(), kOwnBlocks * kTestBlockTokens}}));
  }
  Samples samples;
  for (size_t i = 0; i < all.size(); ++i) {
    samples.Time([&] {
      if (index.Find(all[i]).blocks > all[i].size()) std::abort();
      index.Insert(all[i], 1, At(static_cast<double>(i)));
    });
  }
  Row row = samples.Summary("index_find_insert");
  row.blocks = index.blocks();
  row.ops_per_s *= kStaticBlocks + kOwnBlocks;  // block operations
  row.bytes_per_entry = static_cast<double>(index.bytes()) / static_cast<double>(index.blocks());
  rows.push_back(row);

  Samples forget;  // one block a call; a batch of them is one pass too
  for (size_t i = 0; i < std::min<size_t>(all.size(), 1'000); ++i) {
    forget.Time([&] { index.Forget({all[all.size() - 1 - i].chain.back()}); });
  }
  row = forget.Summary("index_forget");
  row.blocks = index.blocks();
  row.ops_per_s *= static_cast<double>(row.blocks);  // blocks looked at
  rows.push_back(row);
}

void Print(const std::vector<Row>& rows) {
  fmt::print("{:<24} {:>7} {:>9} {:>10} {:>10} {:>12} {:>7} {:>8}\n", "case", "workers", "blocks",
             "p50 us", "p99 us", "ops/s", "GB/s", "B/entry");
  for (const Row& r : rows) {
    fmt::print("{:<24} {:>7} {:>9} {:>10.2f} {:>10.2f} {:>12.0f} {:>7.2f} {:>8.1f}\n", r.name,
               r.workers, r.blocks, r.p50_ns / 1e3, r.p99_ns / 1e3, r.ops_per_s,
               r.bytes_per_s / 1e9, r.bytes_per_entry);
  }
}

std::string CpuInfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string ToJson(const std::vector<Row>& rows, const std::string& command) {
  const char* const commit = std::getenv("HIDANE_COMMIT");
  JsonWriter w;
  w.BeginObject().Key("meta").BeginObject().Field("tool", "bench/routing");
  w.Field("version", HIDANE_VERSION).Field("commit", commit != nullptr ? commit : "unknown");
  w.Field("compiler", __VERSION__).Field("cpu", CpuInfo("model name"));
  w.Field("cpu_flags", CpuInfo("flags")).Field("seed", kSeed).Field("command", command).EndObject();
  w.Key("rows").BeginArray();
  for (const Row& r : rows) {
    w.BeginObject().Field("case", r.name).Field("workers", r.workers).Field("blocks", r.blocks);
    w.Field("p50_ns", r.p50_ns).Field("p99_ns", r.p99_ns).Field("ops_per_s", r.ops_per_s);
    w.Field("bytes_per_s", r.bytes_per_s).Field("bytes_per_entry", r.bytes_per_entry).EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace
}  // namespace hidane::routing

int main(int argc, char** argv) {
  using namespace hidane::routing;
  std::string json_file;
  std::string command = "routing_bench";
  bool quick = std::getenv("QUICK") != nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    command += " " + std::string(arg);
    if (arg == "--json" && i + 1 < argc) {
      json_file = argv[++i];
      command += " " + json_file;
    } else if (arg == "--quick") {
      quick = true;
    } else {
      fmt::print(stderr, "usage: routing_bench [--json FILE] [--quick]\n");
      return 2;
    }
  }
  std::vector<Row> rows;
  BenchBody(quick ? 500 : 5'000, rows);
  for (const uint32_t workers : {8u, 1'000u}) {
    BenchDecisions(workers, quick ? 1'000 : 8'000, quick ? 5'000 : 50'000, rows);
  }
  BenchIndex(quick ? 2'000 : 20'000, rows);
  Print(rows);
  if (json_file.empty()) return 0;
  const std::string json = ToJson(rows, command);
  if (json_file == "-") {
    fmt::print("{}\n", json);
    return 0;
  }
  std::ofstream(json_file) << json << '\n';
  return 0;
}
