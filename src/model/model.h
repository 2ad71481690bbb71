#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/kv_layout.h"
#include "model/slot_signals.h"

namespace hidane::model {

/// How the GEMM weights and the KV cache are held.
enum class Precision : uint8_t {
  kAuto,  ///< bf16 where the CPU multiplies it, else f32
  kF32,   ///< f32 weights, f32 KV, fixed GEMM tiles: output does not depend on the batch
  kBf16,
};

struct ModelOptions {
  Precision precision = Precision::kAuto;
  uint32_t block_size = 16;        ///< slots in a KV block; 1..256
  uint32_t kv_blocks = 0;          ///< physical blocks to allocate; > 0
  uint32_t threads = 1;            ///< threads that compute, the caller's included
  uint32_t step_tokens_max = 512;  ///< new tokens in one Forward; sizes the scratch memory; > 0
  std::string weight_cache_dir{};  ///< prepacked weights shared by engine processes; "" = none
  bool reference_kernels = false;  ///< scalar twins only: slow, for tests
};

/// What a model file says of itself.
struct ModelInfo {
  std::string name, architecture;
  uint32_t layers, dim, ffn_dim, heads, kv_heads, head_dim, rope_dims, vocab_size, context_length;
  float rope_theta, norm_eps;
};

/// One sequence's share of a step: `n_tokens` new tokens, of which the first has the logical
/// position `first_position` and is written to slot `active_length` of the sequence's block table.
/// (Without eviction the two are equal; vToken makes them differ.) Attention of the i-th new token
/// reads the slots 0 .. active_length + i.
struct SeqSlice {
  uint32_t n_tokens;                     ///< >= 1; 1 = decode
  uint32_t first_position;               ///< logical: RoPE
  uint32_t active_length;                ///< slots that attention reads before this step
  std::span<const BlockId> block_table;  ///< covers active_length + n_tokens slots
  bool want_logits;                      ///< of the last new token
  const SlotSignals* signals = nullptr;  ///< what it asks of its attention; null: nothing
  /// [layers][kv_heads]: table slots <= active_length, left by dead tokens, that take in K and V of
  /// the only new token; attention reads the slots 0 .. active_length as ever. Empty: it is written
  /// to slot active_length. REQUIRES if not empty: n_tokens == 1.
  std::span<const uint32_t> write_slots{};
  /// Bit s of a bitmap: attention does not see slot s, which holds no new token.
  /// [layers][kv_heads][words]; empty: it sees all.
  std::span<const uint64_t> dead{};
};

/// What may have its own set of live tokens, and so moves by itself. Its number in a RowMove: 0,
/// the layer, or layer * kv_heads + kv head.
enum class KvUnit : uint8_t { kSequence, kLayer, kKvHead };

/// The K and V rows of a unit move from one physical slot (block * block_size + offset) to another.
struct RowMove {
  uint32_t unit, from, to;
};

struct StepBatch {
  std::span<const TokenId> tokens;  ///< [sum of n_tokens], the slices' tokens one after the other
  std::span<const SeqSlice> seqs;
};

/// A loaded model with its KV memory. Owned and called by one thread, the engine's; kernels run on
/// `threads` threads inside Forward.
class Model {
 public:
  /// kInvalidArgument for a broken, foreign or oversized file (the message names the field),
  /// kNotFound if it can't be opened, kResourceExhausted if KV memory can't be had.
  static Result<std::unique_ptr<Model>> Load(const std::string& gguf_path, const ModelOptions&);
  virtual ~Model() = default;

  virtual const ModelInfo& info() const = 0;
  virtual const KvLayout& kv_layout() const = 0;
  virtual uint32_t kv_blocks() const = 0;

  /// Computes one step: writes K and V of every new token and, for each slice with want_logits in
  /// order, one row of f32 logits. REQUIRES: logits.size() == rows * vocab_size; token ids
  /// < vocab_size; at most step_tokens_max tokens; block ids < kv_blocks(); positions <
  /// context_length. With Precision::kF32 a row is bit for bit the same whatever else is in the
  /// batch and however the prompt was cut into chunks.
  virtual void Forward(const StepBatch& batch, std::span<float> logits) = 0;

  /// Copies K and V rows from slot to slot, one move after the other. May run on another thread
  /// than Forward, not at the same time. REQUIRES: units and slots exist; no slot is the target of
  /// two moves nor source and target within a unit, so that the order does not matter.
  /// Cost: reads and writes the rows once; no allocation.
  virtual void MoveRows(KvUnit unit, std::span<const RowMove> moves) = 0;

  /// The K/V bytes of the table slots 0 .. slots, to keep them outside the blocks and to bring them
  /// back, into other blocks perhaps. `bytes`: slots * kv_layout().token_bytes(), in the order
  /// [layer][K, V][kv_head][slot]. REQUIRES: not during Forward or MoveRows.
  virtual void SaveSlots(std::span<const BlockId> block_table, uint32_t slots,
                         std::span<std::byte> bytes) const = 0;
  virtual void LoadSlots(std::span<const BlockId> block_table, uint32_t slots,
                         std::span<const std::byte> bytes) = 0;

  /// K rows, as attention reads them, of table slots first .. first + n of one kv head in a layer,
  /// in f32: out [n][head_dim]. REQUIRES: not during Forward; the slots were written.
  virtual void ReadKeys(uint32_t layer, uint32_t kv_head, std::span<const BlockId> block_table,
                        uint32_t first, uint32_t n, std::span<float> out) const = 0;
};

}  // namespace hidane::model
