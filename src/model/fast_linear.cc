#include "model/fast_linear.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/assert.h"
#include "model/vector_ops.h"

namespace hidane::model {
namespace {

void Decode(PanelType type, const std::byte* in, uint32_t blocks, float* out) {
  DecodeF32(type, in, blocks, out);
}
void Decode(PanelType type, const std::byte* in, uint32_t blocks, Bf16* out) {
  DecodeBf16(type, in, blocks, out);
}

// A group of panels by a range of inputs is decoded at a time: 32 KB in bf16. Few rows: more
// panels, so that short sums overlap. Many rows: longer sums, so that the output is touched less.
template <class T>
constexpr uint32_t kFewRows = std::is_same_v<T, float> ? 2 : 32;
constexpr uint32_t kFewPanels = 6, kFewInputs = 160;
constexpr uint32_t kManyPanels = 2, kManyInputs = 576;

/// Some neighbouring panels of one matrix, and the output column of the first.
struct Group {
  uint32_t matrix, panel, panels, column;
};

template <class T>
class FastLinear final : public Linear {
 public:
  FastLinear(FastContext<T>& context, WeightStore& store, std::span<const WeightView> parts)
      : context_(context), in_(parts[0].cols) {
    for (const WeightView& part : parts) {
      HIDANE_ASSERT(part.cols == in_ && in_ % kBlockInputs == 0);
      matrices_.push_back(store.Pack(part, std::is_same_v<T, Bf16>));
      AddGroups(kFewPanels, few_);
      AddGroups(kManyPanels, many_);
      out_ += part.rows;
    }
  }

  uint32_t in() const override { return in_; }
  uint32_t out() const override { return out_; }

  void Apply(ConstRows x, uint32_t m, Rows y, Output output) override {
    const bool few = m <= kFewRows<T>;
    const std::vector<Group>& groups = few ? few_ : many_;
    GemmArgs<T> args{};
    args.m = m;
    args.a_col = 1;
    args.ldc = y.stride;
    SetLeft(x, m, args);
    const Call call{args, y, output == Output::kAdd, few, Chunk(few ? kFewInputs : kManyInputs)};
    const auto n_groups = static_cast<uint32_t>(groups.size());
    const uint32_t rows = RowsAtOnce(), bands = (m + rows - 1) / rows;
    context_.pool.ForEach(bands * n_groups, [&](uint32_t task, uint32_t thread) {
      const Call band = Band(call, task / n_groups * rows, rows);
      Compute(band, groups[task % n_groups], context_.per_thread[thread]);
    });
  }

 private:
  struct Call {
    GemmArgs<T> args;
    Rows y;
    bool add, few;
    uint32_t chunk;
  };

  /// Rows whose left operand stays in the second-level cache while all groups pass over it.
  uint32_t RowsAtOnce() const {
    constexpr size_t kBytes = 768 << 10, kUnit = 2 * kRowPad;
    return static_cast<uint32_t>(std::max(size_t{1}, kBytes / sizeof(T) / in_ / kUnit) * kUnit);
  }

  static Call Band(Call call, uint32_t row, uint32_t rows) {
    call.args.a += row * call.args.a_row;
    call.args.m = std::min(rows, call.args.m - row);
    call.y.data += row * call.y.stride;
    return call;
  }

  void AddGroups(uint32_t width, std::vector<Group>& groups) const {
    const auto matrix = static_cast<uint32_t>(matrices_.size() - 1);
    const uint32_t panels = (matrices_.back().rows + kPanel - 1) / kPanel;
    for (uint32_t panel = 0; panel < panels; panel += width)
      groups.push_back({matrix, panel, std::min(width, panels - panel), out_ + panel * kPanel});
  }

  /// Inputs decoded at a time: K cut evenly, none longer than `most`.
  uint32_t Chunk(uint32_t most) const {
    const uint32_t blocks = in_ / kBlockInputs, parts = (in_ + most - 1) / most;
    return (blocks + parts - 1) / parts * kBlockInputs;
  }

  void SetLeft(ConstRows x, uint32_t m, GemmArgs<T>& args) {
    if constexpr (std::is_same_v<T, float>) {
      args.a = x.data;
      args.a_row = x.stride;
    } else {
      // An odd number of cache lines apart, so that a tile's rows don't share cache sets.
      args.a_row = in_ + kBlockInputs * (1 - in_ / kBlockInputs % 2);
      context_.block_sums.template Get<float>(size_t{m} * in_ / kBlockInputs);
      const size_t padded = (m + kRowPad - 1) / kRowPad * kRowPad;
      Bf16* const left = context_.activations.template Get<Bf16>(padded * args.a_row);
      args.a = left;
      constexpr uint32_t kRowsAtOnce = 32;
      context_.pool.ForEach((m + kRowsAtOnce - 1) / kRowsAtOnce, [&](uint32_t task, uint32_t) {
        const uint32_t end = std::min(m, (task + 1) * kRowsAtOnce);
        for (uint32_t row = task * kRowsAtOnce; row < end; ++row)
          Prepare(x.row(row), row, left + row * args.a_row);
      });
    }
  }

  /// A row of the left operand and the sums of its blocks.
  void Prepare(const float* x, uint32_t row, Bf16* out) {
    const uint32_t blocks = in_ / kBlockInputs;
    RoundRow(x, in_, out);
    BlockSums(out, blocks, context_.block_sums.template Get<float>(0) + size_t{row} * blocks);
  }

  /// The whole panels of a group without decoding them to memory. False: not for this many rows or
  /// type.
  bool ComputeQuantised(const Call& call, const Group& group, uint32_t whole) const {
    const PackedMatrix& matrix = matrices_[group.matrix];
    if (!call.few || !Decodes(matrix.type) || whole < group.panels) return false;
    const uint32_t blocks = in_ / kBlockInputs;
    const std::byte* const w = matrix.data + size_t{group.panel} * blocks * BlockBytes(matrix.type);
    context_.quant_gemm({matrix.type, w, group.panels, blocks, call.args.a, call.args.a_row,
                         context_.block_sums.template Get<float>(0), call.args.m,
                         call.y.data + group.column, call.y.stride, call.add});
    return true;
  }

  void Compute(const Call& call, const Group& group, Scratch& scratch) const {
    const PackedMatrix& matrix = matrices_[group.matrix];
    const uint32_t whole = std::min(group.panels, matrix.rows / kPanel - group.panel);
    if (ComputeQuantised(call, group, whole)) return;
    const TileScope tiles(context_.gemm);
    const size_t operand = size_t{group.panels} * call.chunk * kPanel;
    T* const buffer = scratch.Get<T>(operand + (whole < group.panels ? Floats(call.args.m) : 0));
    for (uint32_t k = 0; k < in_; k += call.chunk) {
      GemmArgs<T> args = call.args;
      args.k = std::min(call.chunk, in_ - k);
      args.a += k;
      args.add = call.add || k > 0;
      args.b = buffer;
      for (uint32_t p = 0; p < group.panels; ++p)
        Operand(matrix, group.panel + p, k, args.k, buffer + size_t{p} * args.k * kPanel);
      args.c = call.y.data + group.column;
      args.panels = whole;
      if (whole > 0) context_.gemm(args);
      if (whole < group.panels) {
        args.b += size_t{whole} * args.k * kPanel;
        args.c += whole * kPanel;
        Partial(args, matrix.rows % kPanel, reinterpret_cast<float*>(buffer + operand));
      }
    }
  }

  static size_t Floats(uint32_t m) { return size_t{m} * kPanel * sizeof(float) / sizeof(T); }

  static void Operand(const PackedMatrix& matrix, uint32_t panel, uint32_t k, uint32_t inputs,
                      T* out) {
    const size_t block = size_t{panel} * (matrix.cols / kBlockInputs) + k / kBlockInputs;
    const std::byte* const from = matrix.data + block * BlockBytes(matrix.type);
    const uint32_t blocks = inputs / kBlockInputs;
    if (Decodes(matrix.type)) {
      Decode(matrix.type, from, blocks, out);
    } else {
      std::memcpy(out, from, size_t{blocks} * BlockBytes(matrix.type));
    }
  }

  /// A last panel of `columns` < 16 outputs, by way of `buffer` [m][16]: its neighbours in y belong
  /// to another matrix.
  void Partial(GemmArgs<T> args, uint32_t columns, float* buffer) const {
    float* const c = args.c;
    const size_t ldc = args.ldc;
    std::fill_n(buffer, args.m * kPanel, 0.0F);
    for (uint32_t row = 0; args.add && row < args.m; ++row)
      std::copy_n(c + row * ldc, columns, buffer + row * kPanel);
    args.c = buffer;
    args.ldc = kPanel;
    args.panels = 1;
    context_.gemm(args);
    for (uint32_t row = 0; row < args.m; ++row)
      std::copy_n(buffer + row * kPanel, columns, c + row * ldc);
  }

  FastContext<T>& context_;
  uint32_t in_, out_ = 0;
  std::vector<PackedMatrix> matrices_;
  std::vector<Group> few_, many_;
};

}  // namespace

template <class T>
std::unique_ptr<Linear> MakeFastLinear(FastContext<T>& context, WeightStore& store,
                                       std::span<const WeightView> parts) {
  return std::make_unique<FastLinear<T>>(context, store, parts);
}

template std::unique_ptr<Linear> MakeFastLinear(FastContext<float>&, WeightStore&,
                                                std::span<const WeightView>);
template std::unique_ptr<Linear> MakeFastLinear(FastContext<Bf16>&, WeightStore&,
                                                std::span<const WeightView>);

}  // namespace hidane::model
