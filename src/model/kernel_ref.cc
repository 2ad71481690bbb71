#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "model/dequantize.h"
#include "model/kernels.h"

/// The scalar set: loops in the order of the formulas, sums in double. It says what the fast set
/// must compute; nothing here is fast.
namespace hidane::model {
namespace {

class ReferenceLinear final : public Linear {
 public:
  explicit ReferenceLinear(std::span<const WeightView> parts) : in_(parts[0].cols) {
    for (const WeightView& part : parts) {
      HIDANE_ASSERT(part.cols == in_);
      const size_t size = size_t{part.rows} * part.cols, at = weights_.size();
      out_ += part.rows;
      weights_.resize(at + size);
      Dequantize(part.type, ViewBytes(part), std::span(weights_).subspan(at, size));
    }
  }

  static std::span<const std::byte> ViewBytes(const WeightView& view, uint32_t row = 0,
                                              uint32_t rows = 0) {
    const BlockTraits traits = TraitsOf(view.type);
    const size_t row_bytes = size_t{view.cols} / traits.elements * traits.bytes;
    return {view.data + row * row_bytes, (rows == 0 ? view.rows : rows) * row_bytes};
  }

  uint32_t in() const override { return in_; }
  uint32_t out() const override { return out_; }

  void Apply(ConstRows x, uint32_t m, Rows y, Output output) override {
    for (uint32_t i = 0; i < m; ++i) {
      for (uint32_t n = 0; n < out_; ++n) {
        const float* w = weights_.data() + size_t{n} * in_;
        double sum = 0;
        for (uint32_t k = 0; k < in_; ++k) sum += double{w[k]} * double{x.row(i)[k]};
        float& to = y.row(i)[n];
        to = static_cast<float>(output == Output::kAdd ? sum + double{to} : sum);
      }
    }
  }

 private:
  uint32_t in_, out_ = 0;
  std::vector<float> weights_;
};

class ReferenceKernels final : public Kernels {
 public:
  explicit ReferenceKernels(bool bf16_kv) : bf16_(bf16_kv) {}

  bool bf16() const override { return bf16_; }

  std::unique_ptr<Linear> MakeLinear(std::span<const WeightView> parts) override {
    return std::make_unique<ReferenceLinear>(parts);
  }

  void Embed(const WeightView& table, std::span<const TokenId> rows, Rows out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<uint32_t>(rows[i]);
      HIDANE_ASSERT(row < table.rows);
      Dequantize(table.type, ReferenceLinear::ViewBytes(table, row, 1), {out.row(i), table.cols});
    }
  }

  void RmsNorm(ConstRows x, uint32_t t, std::span<const float> gain, float eps, Rows y) override {
    for (uint32_t r = 0; r < t; ++r) {
      double squares = 0;
      for (size_t i = 0; i < gain.size(); ++i) squares += double{x.row(r)[i]} * x.row(r)[i];
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(gain.size()) + eps);
      for (size_t i = 0; i < gain.size(); ++i) {
        y.row(r)[i] = static_cast<float>(x.row(r)[i] * inverse * gain[i]);
      }
    }
  }

  void Rope(Rows x, uint32_t heads, uint32_t head_dim, std::span<const uint32_t> positions,
            std::span<const float> cos_sin) override {
    for (size_t t = 0; t < positions.size(); ++t) {
      const float* angles = cos_sin.data() + size_t{positions[t]} * head_dim;
      for (uint32_t h = 0; h < heads; ++h) {
        float* head = x.row(t) + size_t{h} * head_dim;
        for (uint32_t i = 0; i < head_dim; i += 2) {
          const float cosine = angles[i], sine = angles[i + 1], a = head[i], b = head[i + 1];
          head[i] = a * cosine - b * sine;
          head[i + 1] = a * sine + b * cosine;
        }
      }
    }
  }

  void SiluMul(ConstRows gate_up, uint32_t t, uint32_t n, Rows out) override {
    for (uint32_t r = 0; r < t; ++r) {
      for (uint32_t i = 0; i < n; ++i) {
        const double z = gate_up.row(r)[i];
        out.row(r)[i] = static_cast<float>(z / (1 + std::exp(-z)) * gate_up.row(r)[n + i]);
      }
    }
  }

  void StoreKv(ConstRows k, ConstRows v, std::span<const AttentionSeq> seqs, const KvLayout& layout,
               KvLayer kv) override {
    for (const AttentionSeq& seq : seqs) {
      for (uint32_t i = 0; i < seq.n_rows; ++i) {
        for (uint32_t g = 0; g < layout.kv_heads; ++g) {
          const uint32_t slot =
              seq.write_slots.empty() ? seq.active_length + i : seq.write_slots[g];
          const size_t at = RowAt(seq, slot, g, layout);
          const size_t from = size_t{g} * layout.head_dim;
          Encode(k.row(seq.first_row + i) + from, layout.head_dim, kv.k + at);
          Encode(v.row(seq.first_row + i) + from, layout.head_dim, kv.v + at);
        }
      }
    }
  }

  void Signals(ConstRows q, uint32_t heads, float scale, const AttentionSeq& seq,
               const KvLayout& layout, const KvLayer& kv, std::span<const float> lse,
               const SlotSignals& out) override {
    const uint32_t group = heads / layout.kv_heads;
    for (uint32_t i = out.FirstRow(seq.n_rows); i < seq.n_rows; ++i) {
      const size_t row = seq.first_row + i;
      const uint32_t length = seq.active_length + i + 1;
      for (uint32_t h = 0; h < heads; ++h) {
        const float* query = q.row(row) + size_t{h} * layout.head_dim;
        const float threshold =
            out.below_factor / static_cast<float>(LiveSlots(seq, length, h / group, layout));
        for (uint32_t slot = 0; slot < length; ++slot) {
          if (IsDead(seq, slot, h / group, layout)) continue;
          const double score = Score(query, scale, seq, slot, h / group, layout, kv);
          const auto p = static_cast<float>(std::exp(score - lse[row * heads + h]));
          const size_t at = size_t{h} * out.stride + slot;
          AddTo(out.mass, i, at, p);
          AddTo(out.window, i, at, p);
          AddTo(out.below, i, at, p < threshold ? 1.0F : 0.0F);
          AddTo({out.last, seq.n_rows - 1}, i, at, p);
        }
      }
    }
  }

  void Attention(ConstRows q, uint32_t heads, float scale, std::span<const AttentionSeq> seqs,
                 const KvLayout& layout, const KvLayer& kv, Rows out,
                 std::span<float> lse) override {
    const uint32_t group = heads / layout.kv_heads, dim = layout.head_dim;
    for (const AttentionSeq& seq : seqs) {
      for (uint32_t i = 0; i < seq.n_rows; ++i) {
        const size_t row = seq.first_row + i;
        for (uint32_t h = 0; h < heads; ++h) {
          const double log_sum =
              AttendOne(q.row(row) + size_t{h} * dim, scale, seq, seq.active_length + i + 1,
                        h / group, layout, kv, out.row(row) + size_t{h} * dim);
          if (!lse.empty()) lse[row * heads + h] = static_cast<float>(log_sum);
        }
      }
    }
  }

 private:
  static size_t RowAt(const AttentionSeq& seq, uint32_t slot, uint32_t kv_head,
                      const KvLayout& layout) {
    const BlockId block = seq.block_table[slot / layout.block_size];
    return layout.RowOffset(block.value(), kv_head, slot % layout.block_size);
  }

  static bool IsDead(const AttentionSeq& seq, uint32_t slot, uint32_t kv_head,
                     const KvLayout& layout) {
    return seq.DeadSlots(kv_head, layout.kv_heads, slot / 64) >> slot % 64 & 1;
  }

  static uint32_t LiveSlots(const AttentionSeq& seq, uint32_t length, uint32_t kv_head,
                            const KvLayout& layout) {
    uint32_t live = 0;
    for (uint32_t slot = 0; slot < length; ++slot) live += !IsDead(seq, slot, kv_head, layout);
    return live;
  }

  static void AddTo(const RowSums& sums, uint32_t row, size_t at, float value) {
    if (!sums.sums.empty() && row >= sums.from) sums.sums[at] += value;
  }

  void Encode(const float* from, uint32_t n, std::byte* to) const {
    if (!bf16_) {
      std::memcpy(to, from, n * sizeof(float));
      return;
    }
    for (uint32_t i = 0; i < n; ++i) {
      const uint16_t value = FloatToBf16(from[i]);
      std::memcpy(to + i * sizeof value, &value, sizeof value);
    }
  }

  float Element(const std::byte* row, uint32_t i) const {
    if (bf16_) {
      uint16_t value;
      std::memcpy(&value, row + i * sizeof value, sizeof value);
      return Bf16ToFloat(value);
    }
    float value;
    std::memcpy(&value, row + i * sizeof value, sizeof value);
    return value;
  }

  double Score(const float* q, float scale, const AttentionSeq& seq, uint32_t slot,
               uint32_t kv_head, const KvLayout& layout, const KvLayer& kv) const {
    const std::byte* key = kv.k + RowAt(seq, slot, kv_head, layout);
    double dot = 0;
    for (uint32_t d = 0; d < layout.head_dim; ++d) dot += double{q[d]} * Element(key, d);
    return dot * scale;
  }

  /// One query row of one head over `length` slots; returns the log of the softmax's denominator.
  double AttendOne(const float* q, float scale, const AttentionSeq& seq, uint32_t length,
                   uint32_t kv_head, const KvLayout& layout, const KvLayer& kv, float* out) {
    scores_.resize(length);
    double top = -INFINITY;
    for (uint32_t slot = 0; slot < length; ++slot) {
      scores_[slot] = IsDead(seq, slot, kv_head, layout)
                          ? -INFINITY
                          : Score(q, scale, seq, slot, kv_head, layout, kv);
      top = std::max(top, scores_[slot]);
    }
    double sum = 0;
    mixed_.assign(layout.head_dim, 0);
    for (uint32_t slot = 0; slot < length; ++slot) {
      if (scores_[slot] == -INFINITY) continue;
      const std::byte* value = kv.v + RowAt(seq, slot, kv_head, layout);
      const double weight = std::exp(scores_[slot] - top);
      sum += weight;
      for (uint32_t d = 0; d < layout.head_dim; ++d) mixed_[d] += weight * Element(value, d);
    }
    for (uint32_t d = 0; d < layout.head_dim; ++d) out[d] = static_cast<float>(mixed_[d] / sum);
    return top + std::log(sum);
  }

  bool bf16_;
  std::vector<double> scores_, mixed_;
};

}  // namespace

std::unique_ptr<Kernels> MakeReferenceKernels(bool bf16_kv) {
  return std::make_unique<ReferenceKernels>(bf16_kv);
}

}  // namespace hidane::model
