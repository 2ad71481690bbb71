// Everything at once against an oracle that knows only tokens: which live in which unit, and what
// was written for each. After every operation all sequences are read through their tables.
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <deque>
#include <memory>

#include "vtoken/kv_world.h"

namespace hidane::vtoken {
namespace {

struct Setup {
  uint32_t blocks, block_size, units;
  Mode mode;
  Placement placement;
};

class Fuzz {
 public:
  Fuzz(const Setup& setup, uint64_t seed)
      : setup_(setup),
        world_(setup.blocks, setup.block_size, setup.units),
        rng_(seed),
        epoch_(world_) {}

  /// "" or the first thing that is wrong.
  std::string Run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const char* const name = Operation();
      if (const std::string wrong = CheckAll(); !wrong.empty()) {
        return std::string(name) + ": " + wrong;
      }
    }
    while (!seqs_.empty()) Drop(0);
    while (world_.pins() > 0) world_.UnpinOldest();
    return world_.pool().free() == setup_.blocks ? "" : "blocks leaked";
  }
  uint64_t evicted() const { return evicted_; }

 private:
  struct Oracle {
    std::vector<uint64_t> writers;           // of each logical token
    std::vector<std::set<uint32_t>> living;  // [units] logical tokens
  };
  struct Seq {
    SequenceKv kv;
    Oracle oracle;
  };

  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(rng_.Below(n)); }
  Seq& Any() { return *seqs_[Below(seqs_.size())]; }
  SequenceShape Shape() const {
    return {setup_.block_size, Scope::kKvHead, setup_.units, setup_.mode};
  }

  const char* Operation() {
    const uint32_t op = Below(20);
    if (seqs_.empty() || op == 0) return New(), "new";
    if (op < 7) return Append(Any()), "append";
    if (op < 12) return RunEpoch(), "epoch";
    if (op == 12) return Below(2) == 0 ? Fork() : ForkByHand(), "fork";
    if (op == 13) return Rollback(Any()), "rollback";
    if (op == 14) return Preempt(), "preempt";
    if (op == 15) return Pin(), "pin";
    if (op == 16) return world_.pins() > 0 ? world_.UnpinOldest() : void(), "unpin";
    if (op == 17) return Hit(), "prefix hit";
    if (op == 18) return (void)Any().kv.Trim(world_), "trim";
    return Drop(Below(seqs_.size())), "cancel";
  }

  void New() {
    if (seqs_.size() > 6) return;
    seqs_.push_back(std::make_unique<Seq>(
        Seq{SequenceKv(Shape()), {{}, std::vector<std::set<uint32_t>>(setup_.units)}}));
  }

  void Append(Seq& seq) {
    if (seq.kv.must_own() && !Repair(seq)) return;
    const uint32_t n = seq.kv.waiting_slots().empty() ? 1 + Below(6) : 1;
    if (!seq.kv.Reserve(world_, n)) return;
    for (uint32_t i = 0; i < n; ++i) {
      const auto token = static_cast<uint32_t>(seq.oracle.writers.size());
      seq.oracle.writers.push_back(++writer_);
      for (uint32_t u = 0; u < setup_.units; ++u) {
        const bool waits = !seq.kv.waiting_slots().empty();
        const uint32_t slot = waits ? seq.kv.waiting_slots()[u] : seq.kv.active_length() + i;
        world_.row(seq.kv, u, slot) = KvWorld::Tag(writer_, token, u);
        seq.oracle.living[u].insert(token);
      }
    }
    if (!seq.kv.Append(n)) failure_ = "append of what was reserved";
    for (uint32_t b = 0; b < seq.kv.table().size(); ++b) {
      if (b >= seq.kv.publishable_blocks()) break;
      if ((b + 1) * setup_.block_size > seq.kv.active_length()) break;
      world_.Publish(seq.kv.table()[b]);
    }
  }

  bool Repair(Seq& seq) {
    if (!epoch_.Repair(seq.kv, {.incoming = 0, .placement = setup_.placement})) return false;
    Finish(true, true);
    return true;
  }

  // Picks n live slots in each unit; returns their tokens in `tokens`.
  std::vector<uint32_t> Victims(Seq& seq, std::vector<uint32_t>& tokens) {
    const uint32_t n = Below(seq.kv.live_tokens() + 1) / (1 + Below(4));
    std::vector<uint32_t> slots;
    for (uint32_t u = 0; u < setup_.units; ++u) {
      std::vector<uint32_t> live;
      for (uint32_t slot = 0; slot <= seq.kv.active_length(); ++slot) {
        if (seq.kv.live(u, slot)) live.push_back(slot);
      }
      for (uint32_t i = 0; i < n; ++i) {
        std::swap(live[i], live[i + Below(live.size() - i)]);
        slots.push_back(live[i]);
        tokens.push_back(seq.kv.token(u, live[i]));
      }
    }
    return slots;
  }

  // Some sequences, each once; then commit, an early or a late abort, or a cancel in between.
  void RunEpoch() {
    struct Part {
      Seq* seq;
      std::vector<uint32_t> tokens;
    };
    std::vector<Part> parts;
    for (const auto& seq : seqs_) {
      if (Below(2) == 0) continue;
      Part part{seq.get(), {}};
      const bool repair = Below(4) == 0;
      const auto victims = repair ? std::vector<uint32_t>() : Victims(*seq, part.tokens);
      const uint32_t moves_max = Below(3) == 0 ? Below(9) : UINT32_MAX;
      const Epoch::Options options{Below(2), setup_.placement, moves_max};
      const auto joined =
          repair ? epoch_.Repair(seq->kv, options) : epoch_.Evict(seq->kv, victims, options);
      if (joined) parts.push_back(std::move(part));
      if (!joined && joined.error().code != Code::kResourceExhausted) failure_ = "evict refused";
    }
    const uint32_t how = Below(10);
    if (how == 1 && !parts.empty()) {
      Seq* const gone = parts[Below(parts.size())].seq;
      epoch_.Remove(gone->kv);
      std::erase_if(parts, [&](const Part& part) { return part.seq == gone; });
      std::erase_if(seqs_, [&](const auto& seq) { return seq.get() == gone; });
    }
    Finish(how != 0 && how != 2, how != 0);
    if (how == 0 || how == 2) return DropDamaged();
    for (const Part& part : parts) {
      const size_t each = part.tokens.size() / setup_.units;
      for (size_t i = 0; i < part.tokens.size(); ++i) {
        part.seq->oracle.living[i / each].erase(part.tokens[i]);
      }
      evicted_ += part.tokens.size();
    }
  }

  void Finish(bool commit, bool seal) {
    if (seal) {
      if (!epoch_.Seal()) failure_ = "seal";
      const auto fence = world_.Start(epoch_.groups());
      // While the copy is under way every sequence still reads what it did.
      for (const auto& seq : seqs_) {
        if (failure_.empty()) failure_ = Read(*seq);
      }
      if (!world_.Wait(*fence)) failure_ = "wait";
    }
    if (!(commit ? epoch_.Commit() : epoch_.Abort())) failure_ = "end of the epoch";
  }

  void DropDamaged() {
    for (size_t i = seqs_.size(); i-- > 0;) {
      if (seqs_[i]->kv.damaged()) Drop(i);
    }
  }

  void Fork() {
    if (seqs_.size() > 6) return;
    Seq& seq = Any();
    auto kv = seq.kv.Fork(world_);
    if (!kv) failure_ = "fork";
    if (kv) seqs_.push_back(std::make_unique<Seq>(Seq{std::move(*kv), seq.oracle}));
  }

  // As a host does that manages the blocks itself.
  void ForkByHand() {
    Seq& seq = Any();
    if (seqs_.size() > 6 || seq.kv.must_own()) return;
    const uint32_t size = setup_.block_size;
    const uint32_t slots = seq.kv.active_length() + (seq.kv.waiting_slots().empty() ? 0 : 1);
    const auto used = seq.kv.table().first((slots + size - 1) / size);
    const auto open = seq.kv.OpenBlocks();
    if (open.size() > world_.pool().free()) return;
    std::vector<BlockId> blocks(used.begin(), used.end());
    for (uint32_t b = 0; b < blocks.size(); ++b) {
      if (!std::binary_search(open.begin(), open.end(), b)) {
        if (!world_.Retain(blocks[b])) failure_ = "retain";
        continue;
      }
      const BlockId from = std::exchange(blocks[b], *world_.Allocate());
      for (uint32_t row = 0; row < setup_.units * size; ++row) {
        const uint32_t u = row / size, i = row % size;
        world_.row(u, blocks[b].value() * size + i) = world_.row(u, from.value() * size + i);
      }
    }
    auto kv = seq.kv.ForkAt(blocks);
    if (!kv) failure_ = "fork at";
    if (kv) seqs_.push_back(std::make_unique<Seq>(Seq{std::move(*kv), seq.oracle}));
  }

  void Rollback(Seq& seq) {
    const uint32_t n = Below(seq.kv.rollback_max() + 1);
    if (seq.kv.Rollback(world_, seq.kv.rollback_max() + 1)) failure_ = "rollback past an epoch";
    if (!seq.kv.Rollback(world_, n)) failure_ = "rollback";
    for (uint32_t i = 0; i < n; ++i) {
      for (auto& living : seq.oracle.living) {
        living.erase(static_cast<uint32_t>(seq.oracle.writers.size()) - 1);
      }
      seq.oracle.writers.pop_back();
    }
  }

  // Out as bytes, and back in whatever blocks are free.
  void Preempt() {
    const uint32_t index = Below(seqs_.size());
    Seq& seq = *seqs_[index];
    const Snapshot snapshot = seq.kv.Export();
    std::vector<uint64_t> rows;
    for (uint32_t u = 0; u < setup_.units; ++u) {
      for (uint32_t slot = 0; slot <= seq.kv.active_length(); ++slot) {
        if (seq.kv.live(u, slot)) rows.push_back(world_.row(seq.kv, u, slot));
      }
    }
    if (!seq.kv.Release(world_)) failure_ = "release";
    const auto decoded = Decode(Encode(snapshot));
    if (!decoded || *decoded != snapshot) {
      failure_ = decoded ? "a snapshot changed as bytes" : decoded.error().what;
      return;
    }
    auto kv = SequenceKv::Import(*decoded, Shape(), world_);
    if (!kv) {  // what it shared is no more, so it may need more blocks than before
      if (kv.error().code != Code::kResourceExhausted) failure_ = kv.error().what;
      return Drop(index);
    }
    size_t row = 0;
    for (uint32_t u = 0; u < setup_.units; ++u) {
      for (uint32_t slot = 0; slot <= kv->active_length(); ++slot) {
        if (kv->live(u, slot)) world_.row(*kv, u, slot) = rows[row++];
      }
    }
    seq.kv = std::move(*kv);
  }

  void Pin() {
    const Seq& seq = Any();
    if (seq.kv.table().empty() || world_.pins() > 4) return;
    world_.Pin(seq.kv, Below(seq.kv.table().size()));
  }

  // A new sequence that begins with the published blocks of another.
  void Hit() {
    if (seqs_.size() > 6) return;
    const Seq& seq = Any();
    uint32_t blocks = 0;
    while (blocks < seq.kv.table().size() && blocks < seq.kv.publishable_blocks() &&
           world_.published(seq.kv.table()[blocks])) {
      ++blocks;
    }
    blocks = Below(blocks + 1);
    const auto table = seq.kv.table().first(blocks);
    for (const BlockId block : table) HIDANE_ASSERT(world_.Retain(block));
    const uint32_t tokens = blocks * setup_.block_size;
    const Oracle& from = seq.oracle;
    auto hit = std::make_unique<Seq>(Seq{SequenceKv(Shape()), {}});
    hit->oracle.writers.assign(from.writers.begin(), from.writers.begin() + tokens);
    hit->oracle.living.resize(setup_.units);
    for (auto& living : hit->oracle.living) {
      for (uint32_t token = 0; token < tokens; ++token) living.insert(token);
    }
    if (!hit->kv.Adopt(table, tokens)) failure_ = "adopt";
    seqs_.push_back(std::move(hit));
  }

  void Drop(size_t index) {
    if (!seqs_[index]->kv.Release(world_)) failure_ = "release";
    seqs_.erase(seqs_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // --- Invariants -------------------------------------------------------------------------------

  std::string Read(const Seq& seq) {
    for (uint32_t u = 0; u < setup_.units; ++u) {
      std::set<uint32_t> tokens;
      for (uint32_t slot = 0; slot <= seq.kv.active_length(); ++slot) {
        if (!seq.kv.live(u, slot)) continue;
        const uint32_t token = seq.kv.token(u, slot);
        if (token >= seq.oracle.writers.size()) return "a token that was never written";
        if (!tokens.insert(token).second) return "a token in two slots";
        const uint64_t tag = KvWorld::Tag(seq.oracle.writers[token], token, u);
        if (world_.row(seq.kv, u, slot) == KvWorld::kPoison) return "a freed row is read";
        if (world_.row(seq.kv, u, slot) != tag) return "a row of another token";
      }
      if (tokens != seq.oracle.living[u]) return "not the tokens that should live";
    }
    return "";
  }

  std::string CheckAll() {
    if (!failure_.empty()) return failure_;
    std::map<BlockId, uint32_t> refs;
    for (const auto& seq : seqs_) {
      if (const std::string wrong = Read(*seq); !wrong.empty()) return wrong;
      const SequenceKv& kv = seq->kv;
      for (const BlockId block : kv.table()) ++refs[block];
      if (kv.logical_length() != seq->oracle.writers.size()) return "logical length";
      if (kv.live_tokens() != seq->oracle.living[0].size()) return "live tokens";
      if (setup_.mode == Mode::kExact && kv.active_length() != kv.live_tokens()) {
        return "a slot below the active length is dead";
      }
    }
    for (uint32_t id = 0; id < setup_.blocks; ++id) {
      if (*world_.RefCount(BlockId(id)) != refs[BlockId(id)]) return "references";
    }
    return world_.CheckReaders();
  }

  Setup setup_;
  KvWorld world_;
  Rng rng_;
  Epoch epoch_;
  std::vector<std::unique_ptr<Seq>> seqs_;
  uint64_t writer_ = 0, evicted_ = 0;
  std::string failure_;
};

RC_GTEST_PROP(EpochFuzz, EveryRowIsWhereItsTokenIs, ()) {
  const Setup setup{.blocks = 60 + *rc::gen::inRange(0u, 200u),
                    .block_size = *rc::gen::element(1u, 2u, 3u, 4u, 8u),
                    .units = *rc::gen::inRange(1u, 4u),
                    .mode = *rc::gen::element(Mode::kExact, Mode::kExact, Mode::kMasked),
                    .placement = *rc::gen::element(Placement::kStable, Placement::kFewestMoves)};
  Fuzz fuzz(setup, *rc::gen::arbitrary<uint64_t>());
  RC_ASSERT(fuzz.Run(60) == "");
}

TEST(EpochFuzz, LongRunsEvictMuchAndLeakNothing) {
  for (const Placement placement : {Placement::kStable, Placement::kFewestMoves}) {
    for (const Mode mode : {Mode::kExact, Mode::kMasked, Mode::kLazy}) {
      Fuzz fuzz({.blocks = 400, .block_size = 4, .units = 2, .mode = mode, .placement = placement},
                7);
      ASSERT_EQ(fuzz.Run(1500), "") << int(mode) << int(placement);
      EXPECT_GT(fuzz.evicted(), 1000u);
    }
  }
}

}  // namespace
}  // namespace hidane::vtoken
