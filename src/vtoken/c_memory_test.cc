// The C interface over a host's memory: every piece comes back, and where the host has none the
// call fails, changes nothing and works the next time.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "hidane_vtoken.h"
#include "vtoken/c_test_host.h"

namespace {

constexpr uint32_t kBlockSize = 4, kUnits = 2;

using hidane::vtoken::Init;
using hidane::vtoken::TestPool;

struct Host : TestPool {
  std::map<void*, size_t> pieces = {};  // of memory, that the library has
  uint64_t allocations = 0;
  uint64_t fail_at = 0;     // which of them fails, from 1
  bool until_call = false;  // and all behind it, until the call returns
  bool failing = false;

  Host() : TestPool{std::vector<uint32_t>(128)} {}
};

Host& Of(void* user) {
  return static_cast<Host&>(*static_cast<TestPool*>(user));
}
void* MemoryAlloc(void* user, size_t bytes) {
  Host& host = Of(user);
  const bool fails = ++host.allocations == host.fail_at;
  host.failing = host.failing || (fails && host.until_call);
  if (fails || host.failing) return nullptr;
  void* const memory = std::malloc(bytes);
  host.pieces.emplace(memory, bytes);
  return memory;
}
void MemoryFree(void* user, void* memory, size_t bytes) {
  const auto piece = Of(user).pieces.extract(memory);
  ASSERT_FALSE(piece.empty());
  EXPECT_EQ(piece.mapped(), bytes);
  std::free(memory);
}

// A context and what its host does with it. A call for which there is no memory is checked to have
// changed nothing, and made again.
class Life {
 public:
  Life(Host& h, uint32_t mode) : host(h) { options_.mode = mode; }
  ~Life() { hidane_vt_destroy(context_); }
  Life(const Life&) = delete;

  void Create() {
    hidane_vt_host vt = host.Callbacks();
    vt.memory_alloc = MemoryAlloc;
    vt.memory_free = MemoryFree;
    options_.block_size = kBlockSize;
    options_.layers = kUnits;
    options_.kv_heads = 1;
    options_.scope = HIDANE_VT_SCOPE_LAYER;
    Call([&] { return hidane_vt_create(&options_, &vt, &context_); });
  }
  hidane_vt_seq New() {
    return Added([&](hidane_vt_seq* out) { return hidane_vt_seq_new(context_, out); });
  }
  hidane_vt_seq Fork(hidane_vt_seq seq) {
    return Added([&](hidane_vt_seq* out) { return hidane_vt_seq_fork(context_, seq, out); });
  }
  hidane_vt_seq Copy(hidane_vt_seq seq) {
    std::vector<std::byte> bytes(4096);
    size_t size = 0;
    Call([&] { return hidane_vt_export(context_, seq, bytes.data(), bytes.size(), &size); });
    return Added(
        [&](hidane_vt_seq* out) { return hidane_vt_import(context_, bytes.data(), size, out); });
  }
  void Adopt(hidane_vt_seq seq, uint32_t tokens) {
    std::vector<uint32_t> blocks((tokens + kBlockSize - 1) / kBlockSize);
    for (uint32_t& block : blocks) ASSERT_EQ(TestPool::Allocate(&host, &block), HIDANE_VT_OK);
    Call([&] {
      return hidane_vt_seq_adopt(context_, seq, blocks.data(), static_cast<uint32_t>(blocks.size()),
                                 tokens);
    });
  }
  void Grow(const std::vector<hidane_vt_seq>& seqs, uint32_t tokens) {
    Each(seqs, tokens, hidane_vt_reserve);
    Each(seqs, tokens, hidane_vt_append);
  }
  void Rollback(hidane_vt_seq seq, uint32_t tokens) {
    Needing0([&] { return hidane_vt_rollback(context_, seq, tokens); });
  }
  void Free(hidane_vt_seq seq) {
    Needing0([&] { return hidane_vt_seq_free(context_, seq); });
    std::erase(seqs_, seq);
  }
  void Delta(hidane_vt_seq seq) {
    uint32_t table[128], first = 0, n = 0;
    Call([&] { return hidane_vt_table_delta(context_, seq, table, 4, 4, 128, &first, &n); });
  }

  // Opens a plan that takes `n` tokens from each unit; those that had no memory are returned.
  std::vector<hidane_vt_seq> Plan(const std::vector<hidane_vt_seq>& seqs, uint32_t n,
                                  uint32_t incoming) {
    std::vector<std::vector<uint32_t>> victims;
    std::vector<hidane_vt_eviction> items(seqs.size(), Init<hidane_vt_eviction>());
    for (size_t i = 0; i < seqs.size(); ++i) {
      victims.push_back(Victims(seqs[i], n));
      items[i].seq = seqs[i];
      items[i].victims = victims[i].data();
      items[i].n_victims = n * kUnits;
      items[i].incoming = incoming;
    }
    const std::string before = Physical();
    const int32_t code =
        hidane_vt_plan(context_, items.data(), static_cast<uint32_t>(items.size()), &plan_);
    host.failing = false;
    if (plan_.epoch == 0) {
      ExpectNoMemory(code, before);
      return seqs;
    }
    std::vector<hidane_vt_seq> left;
    for (const auto& item : items) {
      if (item.result != HIDANE_VT_OK) left.push_back(item.seq);
    }
    EXPECT_EQ(code, left.empty() ? HIDANE_VT_OK : HIDANE_VT_NO_MEMORY);
    failures += left.empty() ? 0 : 1;
    return left;
  }
  void Open(const std::vector<hidane_vt_seq>& seqs, uint32_t n) {
    while (!Plan(seqs, n, 0).empty()) {
      if (plan_.epoch != 0) Needing0([&] { return hidane_vt_abort(context_); });
    }
  }
  void Commit() {
    Needing0([&] { return hidane_vt_commit(context_, plan_.epoch, plan_.digest); });
  }
  void Evict(std::vector<hidane_vt_seq> seqs, uint32_t n, uint32_t incoming = 0) {
    for (int tries = 0; tries < 3 && !seqs.empty(); ++tries) {
      seqs = Plan(seqs, n, incoming);
      if (plan_.epoch != 0) Commit();
    }
    EXPECT_TRUE(seqs.empty());
  }

  // Lengths and which token lies in which slot of each sequence.
  std::string Logical() const { return State(false); }

  Host& host;
  uint64_t failures = 0;

 private:
  // With tables and references too.
  std::string Physical() const { return State(true); }
  std::string State(bool physical) const {
    std::string out;
    const auto put = [&](const uint32_t* values, size_t n) {
      for (size_t i = 0; i < n; ++i) out += std::to_string(values[i]) + ' ';
      out += '\n';
    };
    for (const hidane_vt_seq seq : seqs_) {
      auto info = Init<hidane_vt_seq_info>();
      uint32_t values[256], n = 0;
      EXPECT_EQ(hidane_vt_seq_get(context_, seq, &info), HIDANE_VT_OK);
      put(&info.logical_length, 10);
      for (uint32_t unit = 0; unit < kUnits; ++unit) {
        EXPECT_EQ(hidane_vt_tokens(context_, seq, unit, values, 256, &n), HIDANE_VT_OK);
        put(values, n);
      }
      EXPECT_EQ(hidane_vt_waiting(context_, seq, values, 256, &n), HIDANE_VT_OK);
      put(values, n);
      if (!physical) continue;
      EXPECT_EQ(hidane_vt_table(context_, seq, values, 4, 4, 256, &n), HIDANE_VT_OK);
      put(values, n);
    }
    if (physical) put(host.refs.data(), host.refs.size());
    return out;
  }
  void ExpectNoMemory(int32_t code, const std::string& before) {
    ++failures;
    EXPECT_EQ(code, HIDANE_VT_NO_MEMORY);
    EXPECT_EQ(Physical(), before);
    if (context_ == nullptr) return;
    EXPECT_STREQ(hidane_vt_error(context_), "no memory");
  }
  template <class Fn>
  void Call(Fn&& fn) {
    const std::string before = Physical();
    const int32_t code = fn();
    host.failing = false;
    if (code == HIDANE_VT_OK) return;
    ExpectNoMemory(code, before);
    EXPECT_EQ(fn(), HIDANE_VT_OK);
  }
  template <class Fn>
  void Needing0(Fn&& fn) {
    const uint64_t before = host.allocations;
    EXPECT_EQ(fn(), HIDANE_VT_OK);
    EXPECT_EQ(host.allocations, before);
  }
  template <class Fn>
  hidane_vt_seq Added(Fn&& fn) {
    hidane_vt_seq seq = 0;
    Call([&] { return fn(&seq); });
    seqs_.push_back(seq);
    return seq;
  }
  void Each(std::vector<hidane_vt_seq> seqs, uint32_t tokens,
            int32_t (*call)(hidane_vt_context*, hidane_vt_growth*, uint32_t)) {
    for (int tries = 0; tries < 3 && !seqs.empty(); ++tries) {
      std::vector<hidane_vt_growth> items;
      for (const hidane_vt_seq seq : seqs) {
        items.push_back(Init<hidane_vt_growth>());
        items.back().seq = seq;
        items.back().tokens = tokens;
      }
      const int32_t code = call(context_, items.data(), static_cast<uint32_t>(items.size()));
      host.failing = false;
      seqs.clear();
      for (const auto& item : items) {
        if (item.result != HIDANE_VT_OK) seqs.push_back(item.seq);
      }
      EXPECT_EQ(code, seqs.empty() ? HIDANE_VT_OK : HIDANE_VT_NO_MEMORY);
      failures += seqs.empty() ? 0 : 1;
    }
    EXPECT_TRUE(seqs.empty());
  }
  // Every third live token of each unit, `n` of them.
  std::vector<uint32_t> Victims(hidane_vt_seq seq, uint32_t n) const {
    std::vector<uint32_t> victims;
    for (uint32_t unit = 0; unit < kUnits; ++unit) {
      uint32_t tokens[256], slots = 0;
      EXPECT_EQ(hidane_vt_tokens(context_, seq, unit, tokens, 256, &slots), HIDANE_VT_OK);
      uint32_t lives = unit, chosen = 0;
      for (uint32_t slot = 0; slot < slots && chosen < n; ++slot) {
        if (tokens[slot] == UINT32_MAX || ++lives % 3 != 0) continue;
        victims.push_back(slot);
        ++chosen;
      }
      EXPECT_EQ(chosen, n);
    }
    return victims;
  }

  hidane_vt_options options_ = Init<hidane_vt_options>();
  hidane_vt_context* context_ = nullptr;
  hidane_vt_plan_info plan_ = Init<hidane_vt_plan_info>();
  std::vector<hidane_vt_seq> seqs_ = {};
};

// Every call that there is; sequences are left, and a plan is open.
void LiveOn(Life& life) {
  life.Create();
  const hidane_vt_seq a = life.New(), b = life.New();
  life.Grow({a, b}, 41);
  const hidane_vt_seq c = life.Fork(a);
  life.Delta(a);
  life.Evict({a, b}, 9);  // a's blocks are shared
  life.Evict({a, c}, 0);  // their tails too
  life.Grow({a, b, c}, 20);
  life.Rollback(c, 15);
  life.Delta(a);
  const hidane_vt_seq d = life.Copy(b);
  const hidane_vt_seq e = life.New();
  life.Adopt(e, 7);
  life.Evict({a, d, e}, 1, 1);
  const hidane_vt_seq f = life.Copy(d);
  const hidane_vt_seq g = life.Fork(d);
  life.Evict({d, g}, 0);
  life.Grow({a, e}, 1);
  life.Evict({a, b, c, d}, 8);
  life.Evict({a, b, c, d}, 0);
  life.Grow({a, b, c}, 30);
  life.Open({a, c, f}, 0);
  life.Free(c);
  life.Commit();
  life.Open({b}, 2);
}

class MemoryTest : public testing::TestWithParam<uint32_t> {};  // a mode
INSTANTIATE_TEST_SUITE_P(Modes, MemoryTest,
                         testing::Values(HIDANE_VT_EXACT, HIDANE_VT_MASKED, HIDANE_VT_LAZY));

TEST_P(MemoryTest, EveryPieceComesBackAtTheLatestByDestroy) {
  Host host;
  {
    Life life(host, GetParam());
    LiveOn(life);
    EXPECT_EQ(life.failures, 0u);
    EXPECT_GT(host.pieces.size(), 20u);
  }
  EXPECT_TRUE(host.pieces.empty());
}

TEST_P(MemoryTest, ACallWithoutMemoryChangesNothingAndWorksTheNextTime) {
  Host enough;
  Life whole(enough, GetParam());
  LiveOn(whole);
  for (const bool until_call : {false, true}) {
    for (uint64_t k = 1; k <= enough.allocations && !HasFailure(); ++k) {
      SCOPED_TRACE("allocation " + std::to_string(k) + (until_call ? " and on" : ""));
      Host host;
      host.fail_at = k;
      host.until_call = until_call;
      {
        Life life(host, GetParam());
        LiveOn(life);
        EXPECT_GT(life.failures, 0u);
        EXPECT_EQ(life.Logical(), whole.Logical());
      }
      EXPECT_TRUE(host.pieces.empty());
    }
  }
}

// (Masked and lazy sequences take live sets for each round that marks.)
TEST(ExactMemoryTest, SteadyDecodeTakesNone) {
  Host host;
  Life life(host, HIDANE_VT_EXACT);
  life.Create();
  const hidane_vt_seq seq = life.New();
  life.Grow({seq}, 60);
  uint64_t before = 0;
  for (int round = 0; round < 60; ++round) {
    if (round == 30) before = host.allocations;
    life.Evict({seq}, 5);
    life.Evict({seq}, 0);
    life.Grow({seq}, 5);
  }
  EXPECT_EQ(host.allocations, before);
}

}  // namespace
