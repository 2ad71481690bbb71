#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/gguf.h"
#include "model/kernels.h"
#include "model/kv_memory.h"
#include "model/model.h"
#include "model/scratch.h"
#include "model/weights.h"

namespace hidane::model {

/// Scratch for one kind of activation, [rows][width] f32, on a cache line. Not initialised.
class Activations {
 public:
  Activations(size_t rows, size_t width) : width_(width), data_(memory_.Get<float>(rows * width)) {}
  Rows from(size_t column) const { return {data_ + column, width_}; }
  ConstRows read(size_t column = 0) const { return {data_ + column, width_}; }
  operator Rows() const { return from(0); }

 private:
  Scratch memory_;
  size_t width_;
  float* data_;
};

/// The llama graph over a set of kernels:
///
///   tokens -> embed -> x
///   each layer:  x += O * attention(rope(Q n), rope(K n), V n)     n = norm(x)
///                x += D * (silu(G n) * (U n))                      n = norm(x)
///   rows whose logits are wanted:  logits = W * norm(x)
///
/// Q, K, V are one matrix here, and so are G and U. All memory is taken at construction; Forward
/// allocates nothing.
class Llama final : public Model {
 public:
  struct Parts {
    GgufFile file;  ///< the weights are views into it
    ModelInfo info;
    KvLayout layout;
    std::unique_ptr<Kernels> kernels;
    KvMemory kv;
  };
  Llama(Parts parts, const LlamaTensors& tensors, const ModelOptions& options);

  const ModelInfo& info() const override { return parts_.info; }
  const KvLayout& kv_layout() const override { return parts_.layout; }
  uint32_t kv_blocks() const override { return kv_blocks_; }
  void Forward(const StepBatch& batch, std::span<float> logits) override;
  void MoveRows(KvUnit unit, std::span<const RowMove> moves) override;
  void SaveSlots(std::span<const BlockId> block_table, uint32_t slots,
                 std::span<std::byte> bytes) const override;
  void LoadSlots(std::span<const BlockId> block_table, uint32_t slots,
                 std::span<const std::byte> bytes) override;
  void ReadKeys(uint32_t layer, uint32_t kv_head, std::span<const BlockId> block_table,
                uint32_t first, uint32_t n, std::span<float> out) const override;

 private:
  struct Layer {
    std::vector<float> attn_norm, ffn_norm;
    std::unique_ptr<Linear> qkv, attn_output, gate_up, ffn_down;
  };

  void BeginStep(const StepBatch& batch);
  void RunLayer(uint32_t index);
  void Attend(uint32_t index, bool is_last);
  void KeepWantedRows(Rows attended);
  void NextLayerOfSlots();

  Parts parts_;
  uint32_t kv_blocks_, step_tokens_max_;
  uint32_t q_width_, kv_width_;  ///< heads * head_dim, kv_heads * head_dim
  WeightView token_embd_;
  std::vector<float> output_norm_, rope_;
  std::unique_ptr<Linear> output_;
  std::vector<Layer> layers_;

  Activations x_, normed_, qkv_, mixed_, gate_up_, activated_;
  // The step under way.
  uint32_t rows_ = 0;
  std::vector<uint32_t> positions_;  ///< [rows_]
  std::vector<AttentionSeq> seqs_;
  std::vector<AttentionSeq> wanted_;  ///< last rows whose logits are wanted, before compaction
  struct Asking {
    uint32_t seq;  ///< in seqs_
    const SlotSignals* signals;
  };
  std::vector<Asking> asking_;
  std::vector<float> lse_;  ///< [rows_][heads], while somebody asks
};

/// The fast set with the file's weight cache, or the scalar one if `options` ask for it.
/// kInvalidArgument: bf16 was asked for and this CPU has no bf16 dot products.
Result<std::unique_ptr<Kernels>> KernelsFor(const std::string& gguf_path,
                                            const ModelOptions& options);

/// Model::Load over the given kernels; `options` decides the rest.
Result<std::unique_ptr<Model>> LoadLlama(const std::string& gguf_path, const ModelOptions& options,
                                         std::unique_ptr<Kernels> kernels);

}  // namespace hidane::model
