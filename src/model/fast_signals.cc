#include "model/fast_signals.h"

#include <algorithm>

#include "base/assert.h"
#include "model/attention_tile.h"

namespace hidane::model {
namespace {

constexpr uint32_t kTaskSlots = 512;  // multiple of kTileSlots

bool Counts(const RowSums& sums, uint32_t row) {
  return !sums.sums.empty() && row >= sums.from;
}

/// sums[slot] += p of one column; p lies in the column of a panel.
void AddColumn(const float* p, uint32_t slots, float* sums) {
  for (uint32_t s = 0; s < slots; ++s) sums[s] += p[s * kPanel];
}
void CountBelow(const float* p, uint32_t slots, float threshold, float* counts) {
  for (uint32_t s = 0; s < slots; ++s) counts[s] += p[s * kPanel] < threshold ? 1.0F : 0.0F;
}

}  // namespace

template <class T>
struct FastSignals<T>::Call {
  ConstRows q;
  uint32_t heads;
  float scale;
  const AttentionSeq& seq;
  const KvLayout& layout;
  const KvLayer& kv;
  std::span<const float> lse;
  const SlotSignals& out;

  uint32_t group() const { return heads / layout.kv_heads; }
};

/// A task's part of the thread's scratch memory, and the columns in hand.
template <class T>
struct FastSignals<T>::Work {
  T *queries, *keys;
  float *scores, *buffer, *lse;  ///< [64][16], [16][dim], [panels][16] in units of log2
  int32_t* limits;               ///< [panels][16]
  QueryColumns columns{};

  Work(Scratch& scratch, uint32_t group, uint32_t dim) {
    const uint32_t panels = CeilDiv(kTaskRows * group, kPanel);
    const size_t floats = kTileSlots * kPanel + kPanel * dim + 2 * size_t{panels} * kPanel;
    const size_t elements = size_t{panels} * dim * kPanel + size_t{kTileSlots} * dim;
    scores = scratch.Get<float>(floats + elements * sizeof(T) / sizeof(float));
    buffer = scores + kTileSlots * kPanel;
    lse = buffer + kPanel * dim;
    limits = reinterpret_cast<int32_t*>(lse + panels * kPanel);
    queries = reinterpret_cast<T*>(limits + panels * kPanel);
    keys = queries + size_t{panels} * dim * kPanel;
  }
};

template <class T>
void FastSignals<T>::Run(ConstRows q, uint32_t heads, float scale, const AttentionSeq& seq,
                         const KvLayout& layout, const KvLayer& kv, std::span<const float> lse,
                         const SlotSignals& out) {
  HIDANE_ASSERT(heads % layout.kv_heads == 0 && layout.head_dim % 32 == 0);
  HIDANE_ASSERT(layout.element_bytes == sizeof(T));
  HIDANE_ASSERT(out.stride >= seq.active_length + seq.n_rows);
  if (out.FirstRow(seq.n_rows) >= seq.n_rows) return;
  const Call call{q, heads, scale, seq, layout, kv, lse, out};
  const uint32_t ranges = CeilDiv(seq.active_length + seq.n_rows, kTaskSlots);
  context_.pool.ForEach(ranges * layout.kv_heads, [&](uint32_t i, uint32_t thread) {
    Compute(call, i % layout.kv_heads, i / layout.kv_heads * kTaskSlots,
            context_.per_thread[thread]);
  });
}

template <class T>
void FastSignals<T>::Compute(const Call& call, uint32_t kv_head, uint32_t first_slot,
                             Scratch& scratch) const {
  const AttentionSeq& seq = call.seq;
  Work work(scratch, call.group(), call.layout.head_dim);
  const TileScope tiles(context_.gemm);
  for (uint32_t row = call.out.FirstRow(seq.n_rows); row < seq.n_rows; row += kTaskRows) {
    const uint32_t rows = std::min(kTaskRows, seq.n_rows - row);
    const uint32_t seen = seq.active_length + row + rows;
    if (seen <= first_slot) continue;
    work.columns = {call.q,
                    seq.first_row + row,
                    rows,
                    kv_head,
                    call.group(),
                    call.layout.head_dim,
                    seq.active_length + row + 1};
    PackQueries<T>(work.columns, call.scale, work.buffer, work.queries, work.limits);
    for (uint32_t c = 0; c < work.columns.count(); ++c) {
      const size_t step_row = work.columns.first_row + c / call.group();
      work.lse[c] = kLog2E * call.lse[step_row * call.heads + work.columns.head(c)];
    }
    std::fill(work.lse + work.columns.count(), work.lse + work.columns.panels() * kPanel, 0.0F);
    const uint32_t end = std::min(seen, first_slot + kTaskSlots);
    for (uint32_t slot = first_slot; slot < end; slot += kTileSlots) {
      GatherTile(call.kv.k, call.layout, seq.block_table, kv_head, slot,
                 std::min(kTileSlots, end - slot), work.keys);
      AddTile(call, work, row, slot);
    }
  }
}

template <class T>
void FastSignals<T>::AddTile(const Call& call, const Work& work, uint32_t first_row,
                             uint32_t slot) const {
  const uint32_t dim = call.layout.head_dim;
  const SlotSignals& out = call.out;
  const RowSums last{out.last, call.seq.n_rows - 1};
  GemmArgs<T> scores{work.keys, dim, 1, nullptr, kTileSlots, 1, dim, work.scores, kPanel, false};
  for (uint32_t first = 0; first < work.columns.count(); first += kPanel) {
    alignas(64) int32_t limits[kPanel];
    for (uint32_t c = 0; c < kPanel; ++c)
      limits[c] = work.limits[first + c] - static_cast<int32_t>(slot);
    if (*std::max_element(limits, limits + kPanel) <= 0) continue;
    scores.b = work.queries + size_t{first} * dim;
    context_.gemm(scores);
    ProbabilityTile(work.scores, work.lse + first);
    const uint32_t columns = std::min(kPanel, work.columns.count() - first);
    for (uint32_t c = 0; c < columns; ++c) {
      if (limits[c] <= 0) continue;
      const uint32_t row = first_row + (first + c) / call.group();
      const uint32_t slots = std::min(kTileSlots, static_cast<uint32_t>(limits[c]));
      const size_t at = size_t{work.columns.head(first + c)} * out.stride + slot;
      const float* p = work.scores + c;
      for (const RowSums* to : {&out.mass, &out.window, &last})
        if (Counts(*to, row)) AddColumn(p, slots, to->sums.data() + at);
      if (Counts(out.below, row)) {
        const float threshold =
            out.below_factor / static_cast<float>(call.seq.active_length + row + 1);
        CountBelow(p, slots, threshold, out.below.sums.data() + at);
      }
    }
  }
}

template class FastSignals<float>;
template class FastSignals<Bf16>;

}  // namespace hidane::model
