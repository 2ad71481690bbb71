#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "model/kv_layout.h"
#include "model/slot_signals.h"

namespace hidane::model {

enum class TensorType : uint32_t;  // model/gguf.h
class WeightStore;                 // model/weight_store.h

/// A weight matrix as it lies in the model file: `rows` outputs of `cols` inputs, row-major, whole
/// blocks of its type. A view: the file outlives whatever is built from it.
struct WeightView {
  TensorType type;
  const std::byte* data;
  uint32_t rows, cols;
};

/// Rows of f32 inside a wider buffer: row r starts at data + r * stride.
template <class T>
struct RowsOf {
  T* data;
  size_t stride;  ///< in elements, >= the columns used
  T* row(size_t r) const { return data + r * stride; }
};
using Rows = RowsOf<float>;
using ConstRows = RowsOf<const float>;

/// y[m][n] = sum over k of W[n][k] * x[m][k], for one weight matrix or several stacked along n.
class Linear {
 public:
  enum class Output : uint8_t { kStore, kAdd };  ///< y = xW', or y += xW' (residual stream)
  virtual ~Linear() = default;

  virtual uint32_t in() const = 0;   ///< K
  virtual uint32_t out() const = 0;  ///< N, all parts together

  /// x: [m][K], y: [m][N]. REQUIRES: m >= 1; y overlaps neither x nor the weights.
  /// Error against exact arithmetic on the dequantised weights, with |W||x| = sum |W[n][k]
  /// x[m][k]|:
  ///   f32   2 * K * 2^-24 * |W||x|; a row's bits do not depend on m or on the other rows
  ///   bf16  2 * 2^-8 * |W||x| (both factors rounded to bf16) + the f32 term
  /// Called by the owner of the Kernels. Cost: reads the weights once for m <= 64; K * N * m
  /// multiply-adds. No allocation once an m as large was seen.
  virtual void Apply(ConstRows x, uint32_t m, Rows y, Output output = Output::kStore) = 0;
};

/// The query rows of one sequence in a step, and where its keys and values are. Row i of the
/// sequence is row `first_row + i` of the step; its K and V are in slot `active_length + i` of
/// the table, and its query reads the slots 0 .. active_length + i.
struct AttentionSeq {
  uint32_t first_row;
  uint32_t n_rows;                       ///< >= 1
  uint32_t active_length;                ///< slots filled before this step
  std::span<const BlockId> block_table;  ///< covers active_length + n_rows slots
  /// Where K and V of the only new row go, a table slot <= active_length for each kv head, one
  /// that a dead token left. Its query reads the same slots as ever. Empty: to slot active_length.
  std::span<const uint32_t> write_slots{};
  /// Bit s of a kv head's bitmap: nobody reads slot s, whose K and V must still be finite.
  /// [kv_heads][words]; slots past the words, or all if empty, are live. REQUIRES: the slots of the
  /// step's own rows are live.
  std::span<const uint64_t> dead{};

  /// Bit i: slot 64 * word + i is dead to `kv_head`, of `kv_heads`.
  uint64_t DeadSlots(uint32_t kv_head, uint32_t kv_heads, uint32_t word) const {
    const size_t words = dead.size() / kv_heads;
    return word < words ? dead[kv_head * words + word] : 0;
  }
};

/// One layer's K and V memory: two arrays of blocks as KvLayout says, bf16 or f32.
struct KvLayer {
  std::byte* k;
  std::byte* v;
};

/// The operations that a llama-like forward pass is made of, over whole steps: rows of all
/// sequences one after the other. Two sets exist: the scalar one (plain loops, the meaning) and
/// the fast one, which the CPU decides at run time. Every fast operation is tested against its
/// scalar twin.
///
/// Activations are f32, row-major. Shapes in docstrings: T rows of the step, H query heads, G kv
/// heads, D head_dim. One thread, the owner's, calls a set; a call returns when its work is done.
class Kernels {
 public:
  virtual ~Kernels() = default;

  /// True if KV memory and GEMM operands are bf16; false: f32 and bit-for-bit batch invariance.
  virtual bool bf16() const = 0;

  /// Stacks `parts` along their rows; y's columns are in that order. Quantised matrices stay so and
  /// are decoded tile by tile on use. The result lives no longer than the Kernels.
  /// REQUIRES: parts not empty, all with the same cols; cols % 32 == 0.
  virtual std::unique_ptr<Linear> MakeLinear(std::span<const WeightView> parts) = 0;

  /// Every MakeLinear has been called: what was prepared may be shared with other processes now.
  virtual void FinishLinears() {}

  /// out[i] = row rows[i] of `table`, dequantised. out: [rows.size()][cols].
  /// REQUIRES: rows[i] < table.rows. Exact.
  virtual void Embed(const WeightView& table, std::span<const TokenId> rows, Rows out) = 0;

  /// y[t][i] = x[t][i] * gain[i] / sqrt(mean over i of x[t][i]^2 + eps). x, y: [T][n]; gain: [n].
  /// y may be x. Relative error <= (n + 4) * 2^-24.
  virtual void RmsNorm(ConstRows x, uint32_t t, std::span<const float> gain, float eps, Rows y) = 0;

  /// Rotates interleaved pairs in place: for head h, pair i < D/2 of row t at position p,
  ///     (a, b) -> (a cos - b sin, a sin + b cos),   angle = p * theta^(-2i/D)
  /// x: [T][heads * D]; positions: [T]; cos_sin: [max position + 1][D/2][2], from MakeRopeTable.
  /// REQUIRES: D even. Error <= 2^-23 * (|a| + |b|).
  virtual void Rope(Rows x, uint32_t heads, uint32_t head_dim, std::span<const uint32_t> positions,
                    std::span<const float> cos_sin) = 0;

  /// out[t][i] = silu(gate_up[t][i]) * gate_up[t][n + i], silu(z) = z / (1 + exp(-z)).
  /// gate_up: [T][2n], out: [T][n]. Relative error <= (|z| + 8) * 2^-23 for |z| <= 80.
  virtual void SiluMul(ConstRows gate_up, uint32_t t, uint32_t n, Rows out) = 0;

  /// Writes K and V of every new row to its slot, rounded to the KV element (nearest, even).
  /// k, v: [T][G * D]. REQUIRES: no slot is written twice in a call.
  virtual void StoreKv(ConstRows k, ConstRows v, std::span<const AttentionSeq> seqs,
                       const KvLayout& layout, KvLayer kv) = 0;

  /// out[t][h] = softmax(scale * q[t][h] . K) V over the slots that the row may read, K and V of kv
  /// head h / (H / G): paged, causal, grouped-query attention, for prefill chunks and decode rows
  /// alike. q, out: [T][H * D]; lse, if not empty, [T * H]: log of the sum of exp(scale * q . k).
  /// REQUIRES: StoreKv of the same seqs came before; H % G == 0; D % 32 == 0, D <= 256.
  /// Error: f32  (D + length) * 2^-23 * max|V| (inputs of moderate logits: |scale q.k| <= 30);
  ///        bf16 2^-6 * max|V| (q and the probabilities are rounded to bf16).
  /// In f32 a row's bits depend on that row, its K and V and its length alone.
  /// Cost: K and V are read once for all query heads of a kv head and for a block of rows.
  virtual void Attention(ConstRows q, uint32_t heads, float scale,
                         std::span<const AttentionSeq> seqs, const KvLayout& layout,
                         const KvLayer& kv, Rows out, std::span<float> lse = {}) = 0;

  /// What this attention of `seq` says of its slots: adds to out's arrays of this layer,
  /// [H][stride]; to `last` too, whose slots are 0 before.
  /// `lse`: as Attention gave it for the same step. REQUIRES: Attention's, and q unchanged since.
  /// Error of a p: f32 (D + 8) * 2^-23 * (1 + |scale q.k|); bf16 2^-6. In f32 the bits of a sum
  /// depend on the rows that count and their K alone.
  /// Cost: the score half of Attention for the rows that count; K alone is read.
  virtual void Signals(ConstRows q, uint32_t heads, float scale, const AttentionSeq& seq,
                       const KvLayout& layout, const KvLayer& kv, std::span<const float> lse,
                       const SlotSignals& out) = 0;
};

/// Scalar twins on one thread; plain loops that follow the formulas above.
std::unique_ptr<Kernels> MakeReferenceKernels(bool bf16_kv);

/// The fast set on `threads` threads, the caller's included. `bf16` asks for bf16 operands and KV:
/// AMX or AVX-512-BF16 instructions. `weights` keeps the packed matrices; without it, memory of
/// this process. REQUIRES: threads >= 1; !bf16 || CpuMultipliesBf16().
std::unique_ptr<Kernels> MakeFastKernels(uint32_t threads, bool bf16,
                                         std::unique_ptr<WeightStore> weights);
std::unique_ptr<Kernels> MakeFastKernels(uint32_t threads, bool bf16);

/// True if this CPU (and kernel) offers bf16 dot products to this process. The environment
/// variable HIDANE_CPU lowers what is used (model/cpu.h).
bool CpuMultipliesBf16();

}  // namespace hidane::model
