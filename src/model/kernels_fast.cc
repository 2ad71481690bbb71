#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "model/cpu.h"
#include "model/dequantize.h"
#include "model/fast_attention.h"
#include "model/fast_linear.h"
#include "model/fast_signals.h"
#include "model/kernels.h"
#include "model/vector_ops.h"
#include "model/weight_store.h"

namespace hidane::model {
namespace {

template <class T>
class FastKernels final : public Kernels {
 public:
  FastKernels(uint32_t threads, GemmFn<T> gemm, QuantGemmFn<T> quant_gemm,
              std::unique_ptr<WeightStore> weights)
      : context_(threads, gemm, quant_gemm),
        attention_(context_),
        signals_(context_),
        store_(std::move(weights)) {}

  bool bf16() const override { return std::is_same_v<T, Bf16>; }

  std::unique_ptr<Linear> MakeLinear(std::span<const WeightView> parts) override {
    return MakeFastLinear(context_, *store_, parts);
  }

  void FinishLinears() override { store_->Finish(); }

  void Embed(const WeightView& table, std::span<const TokenId> rows, Rows out) override {
    const BlockTraits traits = TraitsOf(table.type);
    const size_t bytes = size_t{table.cols} / traits.elements * traits.bytes;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<uint32_t>(rows[i]);
      HIDANE_ASSERT(row < table.rows);
      Dequantize(table.type, {table.data + row * bytes, bytes}, {out.row(i), table.cols});
    }
  }

  void RmsNorm(ConstRows x, uint32_t t, std::span<const float> gain, float eps, Rows y) override {
    ForRows(t, gain.size(), [&](uint32_t row) {
      RmsNormRow(x.row(row), gain.data(), gain.size(), eps, y.row(row));
    });
  }

  void Rope(Rows x, uint32_t heads, uint32_t head_dim, std::span<const uint32_t> positions,
            std::span<const float> cos_sin) override {
    ForRows(static_cast<uint32_t>(positions.size()), size_t{heads} * head_dim, [&](uint32_t row) {
      RopeRow(x.row(row), heads, head_dim, cos_sin.data() + size_t{positions[row]} * head_dim);
    });
  }

  void SiluMul(ConstRows gate_up, uint32_t t, uint32_t n, Rows out) override {
    ForRows(t, size_t{n} * 4, [&](uint32_t row) {
      SiluMulRow(gate_up.row(row), gate_up.row(row) + n, n, out.row(row));
    });
  }

  void StoreKv(ConstRows k, ConstRows v, std::span<const AttentionSeq> seqs, const KvLayout& layout,
               KvLayer kv) override {
    HIDANE_ASSERT(layout.element_bytes == sizeof(T));
    for (const AttentionSeq& seq : seqs)
      ForRows(seq.n_rows, size_t{layout.kv_heads} * layout.head_dim * 2, [&](uint32_t i) {
        const uint32_t row = seq.first_row + i;
        for (uint32_t head = 0; head < layout.kv_heads; ++head) {
          const uint32_t slot =
              seq.write_slots.empty() ? seq.active_length + i : seq.write_slots[head];
          const uint32_t block = seq.block_table[slot / layout.block_size].value();
          const size_t at = layout.RowOffset(block, head, slot % layout.block_size);
          const size_t from = size_t{head} * layout.head_dim;
          Put(k.row(row) + from, layout.head_dim, kv.k + at);
          Put(v.row(row) + from, layout.head_dim, kv.v + at);
        }
      });
  }

  void Attention(ConstRows q, uint32_t heads, float scale, std::span<const AttentionSeq> seqs,
                 const KvLayout& layout, const KvLayer& kv, Rows out,
                 std::span<float> lse) override {
    attention_.Run(q, heads, scale, seqs, layout, kv, out, lse);
  }

  void Signals(ConstRows q, uint32_t heads, float scale, const AttentionSeq& seq,
               const KvLayout& layout, const KvLayer& kv, std::span<const float> lse,
               const SlotSignals& out) override {
    signals_.Run(q, heads, scale, seq, layout, kv, lse, out);
  }

 private:
  static void Put(const float* from, uint32_t n, std::byte* to) {
    if constexpr (std::is_same_v<T, float>) {
      std::memcpy(to, from, n * sizeof(float));
    } else {
      RoundRow(from, n, reinterpret_cast<Bf16*>(to));
    }
  }

  /// fn(row) for every row, on all threads where the work outweighs a fork. `cost`: elements a row.
  template <class Fn>
  void ForRows(uint32_t rows, size_t cost, Fn fn) {
    constexpr size_t kTaskElements = 16384;
    const auto at_once = static_cast<uint32_t>(std::max<size_t>(1, kTaskElements / cost));
    context_.pool.ForEach((rows + at_once - 1) / at_once, [&](uint32_t task, uint32_t) {
      const uint32_t end = std::min(rows, (task + 1) * at_once);
      for (uint32_t row = task * at_once; row < end; ++row) fn(row);
    });
  }

  FastContext<T> context_;
  FastAttention<T> attention_;
  FastSignals<T> signals_;
  std::unique_ptr<WeightStore> store_;
};

}  // namespace

bool CpuMultipliesBf16() {
  return BestIsa() >= Isa::kAvx512Bf16;
}

std::unique_ptr<Kernels> MakeFastKernels(uint32_t threads, bool bf16) {
  return MakeFastKernels(threads, bf16, std::make_unique<WeightStore>());
}

std::unique_ptr<Kernels> MakeFastKernels(uint32_t threads, bool bf16,
                                         std::unique_ptr<WeightStore> weights) {
  const Isa isa = BestIsa();
  if (!bf16) {
    return std::make_unique<FastKernels<float>>(threads, GemmF32, QuantGemmF32, std::move(weights));
  }
  HIDANE_ASSERT(isa >= Isa::kAvx512Bf16);
  const bool amx = isa == Isa::kAmx;
  return std::make_unique<FastKernels<Bf16>>(threads, amx ? GemmBf16Amx : GemmBf16Avx512,
                                             amx ? QuantGemmAmx : QuantGemmAvx512,
                                             std::move(weights));
}

}  // namespace hidane::model
