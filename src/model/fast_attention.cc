#include "model/fast_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/assert.h"
#include "base/bits.h"
#include "model/attention_tile.h"
#include "model/row_attention.h"
#include "model/vector_ops.h"

namespace hidane::model {
namespace {

constexpr uint32_t kCutSlots = 512;  // multiple of kTileSlots
static_assert(kCutSlots <= kRowAttentionSlots);
constexpr uint32_t kFewRows = 4;    // up to here, cuts are tasks of their own
constexpr uint32_t kSumBlocks = 6;  // in a product with a panel, at least
constexpr float kLn2 = 0.6931471805599453F;
static_assert(kTileSlots == 64);  // a tile's dead slots are a word

/// Floats of one panel's state and sums.
size_t PanelFloats(uint32_t head_dim) {
  return sizeof(SoftmaxState) / sizeof(float) + size_t{head_dim} * kPanel;
}
SoftmaxState& State(float* panel) {
  return *reinterpret_cast<SoftmaxState*>(panel);
}
float* Sums(float* panel) {
  return panel + sizeof(SoftmaxState) / sizeof(float);
}

void Clear(float* panel, uint32_t head_dim) {
  std::fill_n(panel, PanelFloats(head_dim), 0.0F);
  std::fill_n(State(panel).max, kPanel, kNoMax);
}

}  // namespace

/// The arguments of Run, and what follows from them.
template <class T>
struct FastAttention<T>::Call {
  ConstRows q;
  uint32_t heads;
  float scale;
  std::span<const AttentionSeq> seqs;
  const KvLayout& layout;
  const KvLayer& kv;
  Rows out;
  std::span<float> lse;

  uint32_t dim() const { return layout.head_dim; }
  uint32_t group() const { return heads / layout.kv_heads; }
  uint32_t Panels(const Task& task) const { return CeilDiv(task.rows * group(), kPanel); }
  /// Of the tile of slots that begins at `slot`.
  uint64_t Dead(const Task& task, uint32_t slot) const {
    return seqs[task.seq].DeadSlots(task.kv_head, layout.kv_heads, slot / kTileSlots);
  }
};

/// A task's part of the thread's scratch memory.
template <class T>
struct FastAttention<T>::Work {
  T* queries;                   ///< panels as a right operand
  float* total;                 ///< panels of state and sums
  float* cut;                   ///< likewise, of the current cut
  T *keys, *values, *values_t;  ///< a tile, of bf16
  float* scores;                ///< [64][16]
  T* probs;                     ///< panels as a right operand
  float* rows;                  ///< [16][D]
  int32_t* limits;              ///< [panels][16]: slots that a column sees
  uint32_t* columns;            ///< [panels]: that see the current tile

  Work(Scratch& scratch, uint32_t panels, uint32_t dim) {
    const size_t tile = size_t{kTileSlots} * dim;
    const size_t states = panels * PanelFloats(dim);
    const size_t integers = panels * kPanel + (panels + kPanel - 1) / kPanel * kPanel;
    const size_t floats = 2 * states + kTileSlots * kPanel + kPanel * dim + integers;
    const size_t elements = panels * (size_t{dim} + kTileSlots) * kPanel + 3 * tile;
    total = scratch.Get<float>(floats + elements * sizeof(T) / sizeof(float));
    cut = total + states;
    scores = cut + states;
    rows = scores + kTileSlots * kPanel;
    limits = reinterpret_cast<int32_t*>(rows + kPanel * dim);
    columns = reinterpret_cast<uint32_t*>(limits + panels * kPanel);
    queries = reinterpret_cast<T*>(limits + integers);
    keys = queries + size_t{panels} * dim * kPanel;
    values = keys + tile;
    values_t = values + tile;
    probs = values_t + tile;
  }
};

/// kTileSlots slots of a sequence, fewer at its end.
template <class T>
struct FastAttention<T>::Tile {
  uint32_t first_slot, slots;
  uint64_t dead;
  const float* rows[2 * kTileSlots];  ///< keys, then values: f32 is read where it lies
  const float* next[2 * kTileSlots];  ///< of the tile that follows
  Ahead ahead;
};

template <class T>
void FastAttention<T>::Plan(const Call& call) {
  tasks_.clear();
  joins_.clear();
  int64_t partials = 0;
  for (uint32_t s = 0; s < call.seqs.size(); ++s) {
    const AttentionSeq& seq = call.seqs[s];
    const uint32_t blocks = CeilDiv(seq.n_rows, kTaskRows);
    // Long contexts first: a long task at the end would leave the other threads idle.
    for (uint32_t b = blocks; b-- > 0;) {
      const uint32_t row = b * kTaskRows, rows = std::min(kTaskRows, seq.n_rows - row);
      const uint32_t cuts = CeilDiv(seq.active_length + row + rows, kCutSlots);
      const bool split = seq.n_rows <= kFewRows && cuts > 1;
      for (uint32_t head = 0; head < call.layout.kv_heads; ++head) {
        Task task{s, head, row, rows, 0, cuts, -1};
        if (split) {
          joins_.push_back(static_cast<uint32_t>(tasks_.size()));
          task.cuts = 1;
          for (; task.first_cut < cuts; ++task.first_cut) {
            task.partial = partials;
            partials += call.Panels(task);
            tasks_.push_back(task);
          }
        } else {
          tasks_.push_back(task);
        }
      }
    }
  }
  context_.partials.template Get<float>(static_cast<size_t>(partials) * PanelFloats(call.dim()));
}

template <class T>
void FastAttention<T>::Run(ConstRows q, uint32_t heads, float scale,
                           std::span<const AttentionSeq> seqs, const KvLayout& layout,
                           const KvLayer& kv, Rows out, std::span<float> lse) {
  HIDANE_ASSERT(heads % layout.kv_heads == 0 && layout.head_dim % 32 == 0);
  HIDANE_ASSERT(layout.element_bytes == sizeof(T));
  const Call call{q, heads, scale, seqs, layout, kv, out, lse};
  Plan(call);
  context_.pool.ForEach(static_cast<uint32_t>(tasks_.size()), [&](uint32_t i, uint32_t thread) {
    Compute(call, tasks_[i], context_.per_thread[thread]);
  });
  for (const uint32_t first : joins_) JoinCuts(call, tasks_[first]);
}

template <class T>
void FastAttention<T>::Compute(const Call& call, const Task& task, Scratch& scratch) {
  const uint32_t panels = call.Panels(task), dim = call.dim();
  const Work work(scratch, panels, dim);
  const TileScope tiles(context_.gemm);
  const AttentionSeq& seq = call.seqs[task.seq];
  PackQueries<T>({call.q, seq.first_row + task.row, task.rows, task.kv_head, call.group(), dim,
                  seq.active_length + task.row + 1},
                 call.scale, work.rows, work.queries, work.limits);
  const size_t stride = PanelFloats(dim);
  if (task.partial >= 0) {
    float* const partials = context_.partials.template Get<float>(0);
    SumCut(call, task, work, task.first_cut, partials + static_cast<size_t>(task.partial) * stride);
    return;
  }
  SumCut(call, task, work, 0, work.total);
  for (uint32_t cut = 1; cut < task.cuts; ++cut) {
    SumCut(call, task, work, cut, work.cut);
    for (uint32_t p = 0; p < panels; ++p) {
      float *const total = work.total + p * stride, *const later = work.cut + p * stride;
      SoftmaxMerge(State(total), Sums(total), dim, State(later), Sums(later));
    }
  }
  Write(call, task, work.total, work.rows);
}

template <class T>
void FastAttention<T>::SumCut(const Call& call, const Task& task, const Work& work, uint32_t cut,
                              float* sums) const {
  const AttentionSeq& seq = call.seqs[task.seq];
  const uint32_t dim = call.dim(), panels = call.Panels(task);
  for (uint32_t p = 0; p < panels; ++p) Clear(sums + p * PanelFloats(dim), dim);
  const uint32_t seen = seq.active_length + task.row + task.rows;
  const uint32_t end = std::min(seen, (cut + 1) * kCutSlots);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (task.rows == 1 && panels == 1) {
      SumRow(call, task, work, cut * kCutSlots, end, sums);
      return;
    }
  }
  const uint32_t last = std::min(seen, (task.first_cut + task.cuts) * kCutSlots);
  Tile tile;
  for (uint32_t slot = cut * kCutSlots; slot < end; slot += kTileSlots) {
    const uint32_t n = std::min(kTileSlots, end - slot);
    tile.first_slot = slot;
    tile.slots = n;
    tile.dead = call.Dead(task, slot);
    if ((~tile.dead & LowBits(n)) == 0) continue;
    const uint32_t next = std::min(kTileSlots, last - slot - n);
    const auto& table = seq.block_table;
    if constexpr (std::is_same_v<T, float>) {
      PointToTile(call.kv, call.layout, table, task.kv_head, slot, n, tile.rows);
      PointToTile(call.kv, call.layout, table, task.kv_head, slot + n, next, tile.next);
      const auto lines = static_cast<uint32_t>(call.layout.row_bytes() / kLine);
      tile.ahead = {tile.next, 2 * next, lines, CeilDiv(2 * next * lines, 2 * panels * kSumBlocks)};
    } else {
      GatherTile(call.kv.k, call.layout, table, task.kv_head, slot, n, work.keys);
      GatherTile(call.kv.v, call.layout, table, task.kv_head, slot, n, work.values);
      TransposeBf16(work.values, kTileSlots, dim, work.values_t);
      for (const std::byte* base : {call.kv.k, call.kv.v})
        PrefetchTile(base, call.layout, table, task.kv_head, slot + n, next);
    }
    SumTile(call, work, tile, panels, sums);
  }
}

/// A single row needs no tiles: its slots first .. end, from where they lie.
template <class T>
void FastAttention<T>::SumRow(const Call& call, const Task& task, const Work& work, uint32_t first,
                              uint32_t end, float* sums) const {
  const AttentionSeq& seq = call.seqs[task.seq];
  const uint32_t block_size = call.layout.block_size;
  const Bf16* keys[kCutSlots + kRowAttentionPad];
  const Bf16* values[kCutSlots + kRowAttentionPad];
  uint32_t slots = 0;
  for (uint32_t slot = first; slot < end; ++slot) {
    if (!seq.dead.empty() && call.Dead(task, slot) >> slot % kTileSlots & 1) continue;
    const size_t at = call.layout.RowOffset(seq.block_table[slot / block_size].value(),
                                            task.kv_head, slot % block_size);
    keys[slots] = reinterpret_cast<const Bf16*>(call.kv.k + at);
    values[slots++] = reinterpret_cast<const Bf16*>(call.kv.v + at);
  }
  if (slots == 0) return;
  std::fill_n(keys + slots, kRowAttentionPad, keys[slots - 1]);
  std::fill_n(values + slots, kRowAttentionPad, values[slots - 1]);
  RowAttentionBf16({reinterpret_cast<const Bf16*>(work.rows), call.group(), call.dim(), keys,
                    values, slots, State(sums).max, State(sums).sum, Sums(sums), kPanel});
}

template <class T>
void FastAttention<T>::SumTile(const Call& call, const Work& work, Tile& tile, uint32_t panels,
                               float* sums) const {
  const uint32_t dim = call.dim();
  GemmArgs<T> scores{work.keys, dim, 1, nullptr, kTileSlots, 1, dim, work.scores, kPanel, false};
  GemmArgs<T> values{work.values_t, kTileSlots, 1,      work.probs, dim, 1,
                     kTileSlots,    nullptr,    kPanel, true};
  if constexpr (std::is_same_v<T, float>) {
    scores.rows = tile.rows;
    values.rows = tile.rows + tile.slots;
    values.by_column = true;
    scores.ahead = values.ahead = &tile.ahead;
    scores.m = values.k = tile.slots;  // the others' scores and probabilities count for nothing
  }
  // Keys with every panel first, then values: one tile and what belongs to a panel fit the
  // first-level cache, both tiles don't.
  for (uint32_t p = 0; p < panels; ++p) {
    alignas(64) int32_t limits[kPanel];
    uint32_t& columns = work.columns[p];  // up to the last that sees a slot
    columns = 0;
    for (uint32_t c = 0; c < kPanel; ++c) {
      limits[c] = work.limits[p * kPanel + c] - static_cast<int32_t>(tile.first_slot);
      if (limits[c] > 0) columns = c + 1;
    }
    if (columns == 0) continue;  // the tile lies behind every row of this panel
    float* const panel = sums + p * PanelFloats(dim);
    scores.columns = columns;
    scores.b = work.queries + size_t{p} * dim * kPanel;
    context_.gemm(scores);
    SoftmaxTile(work.scores, limits, tile.dead, State(panel), Sums(panel), dim,
                work.probs + size_t{p} * kTileSlots * kPanel);
  }
  for (uint32_t p = 0; p < panels; ++p) {
    if (work.columns[p] == 0) continue;
    values.columns = work.columns[p];
    values.b = work.probs + size_t{p} * kTileSlots * kPanel;
    values.c = Sums(sums + p * PanelFloats(dim));
    context_.gemm(values);
  }
}

template <class T>
void FastAttention<T>::JoinCuts(const Call& call, const Task& first) {
  const uint32_t dim = call.dim(), panels = call.Panels(first);
  const size_t stride = PanelFloats(dim);
  const AttentionSeq& seq = call.seqs[first.seq];
  const uint32_t cuts = CeilDiv(seq.active_length + first.row + first.rows, kCutSlots);
  float* const total =
      context_.partials.template Get<float>(0) + static_cast<size_t>(first.partial) * stride;
  for (uint32_t p = panels; p < cuts * panels; ++p) {
    float *const to = total + p % panels * stride, *const later = total + p * stride;
    SoftmaxMerge(State(to), Sums(to), dim, State(later), Sums(later));
  }
  Write(call, first, total, context_.per_thread[0].template Get<float>(kPanel * dim));
}

template <class T>
void FastAttention<T>::Write(const Call& call, const Task& task, float* sums, float* rows) const {
  const uint32_t dim = call.dim(), group = call.group(), columns = task.rows * group;
  const uint32_t first_row = call.seqs[task.seq].first_row + task.row;
  for (uint32_t p = 0; p < call.Panels(task); ++p, sums += PanelFloats(dim)) {
    SoftmaxFinish(State(sums), Sums(sums), dim);
    // [D][16] to [16][D], sixteen rows of D at a time.
    const auto transpose = sizeof(T) == 2 ? Transpose16Avx512 : Transpose16;
    for (uint32_t d = 0; d < dim; d += 16)
      transpose(reinterpret_cast<const uint32_t*>(Sums(sums)) + d * kPanel, kPanel, kPanel,
                reinterpret_cast<uint32_t*>(rows) + d, dim);
    for (uint32_t c = 0; c < kPanel && p * kPanel + c < columns; ++c) {
      const uint32_t column = p * kPanel + c, row = first_row + column / group;
      const uint32_t head = task.kv_head * group + column % group;
      std::memcpy(call.out.row(row) + head * dim, rows + c * dim, dim * sizeof(float));
      if (!call.lse.empty())
        call.lse[size_t{row} * call.heads + head] =
            kLn2 * (State(sums).max[c] + std::log2(State(sums).sum[c]));
    }
  }
}

template class FastAttention<float>;
template class FastAttention<Bf16>;

}  // namespace hidane::model
