#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace hidane::model {

/// A sum over new rows of a step, for each query head and table slot; empty: not asked for.
/// Forward adds to `sums`, row by row in their order, so a caller who hands the same memory to each
/// step gets the sum over all of them, in f32 the same bits however the rows were cut into steps.
struct RowSums {
  std::span<float> sums;
  uint32_t from = 0;  ///< first new row that counts, within the slice; past the last: none does
};

/// What attention says of one sequence's slots in a step, for eviction policies. p is the
/// probability that a new row's query gives a slot. Sums are [layers][heads][stride]; only table
/// slots below active_length + n_tokens are touched.
/// Cost of a step: one more pass over K for the rows that count.
struct SlotSignals {
  uint32_t stride = 0;  ///< slots of a row of sums; >= active_length + n_tokens
  RowSums mass;         ///< += p: the column sums of attention
  RowSums window;       ///< += p, of other rows: the last w of a prompt, say
  RowSums below;        ///< += 1 where p < below_factor / slots that the row reads
  float below_factor = 1;
  std::span<float> last;  ///< = p of the slice's last row

  /// The first of `rows` rows that counts in any sum; `rows` if none does.
  uint32_t FirstRow(uint32_t rows) const {
    uint32_t first = last.empty() ? rows : rows - 1;
    for (const RowSums* s : {&mass, &window, &below}) {
      if (!s->sums.empty() && s->from < first) first = s->from;
    }
    return first;
  }
  /// The part of one layer, [heads][stride].
  SlotSignals Layer(uint32_t layer, uint32_t heads) const {
    const size_t size = size_t{heads} * stride;
    const auto part = [&](std::span<float> all) {
      return all.empty() ? all : all.subspan(layer * size, size);
    };
    return {stride,
            {part(mass.sums), mass.from},
            {part(window.sums), window.from},
            {part(below.sums), below.from},
            below_factor,
            part(last)};
  }
};

}  // namespace hidane::model
