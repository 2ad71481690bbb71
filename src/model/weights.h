#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "model/gguf.h"
#include "model/model.h"

namespace hidane::model {

/// The tensors of one llama layer, as they lie in the file. Matrices are [rows out, cols in].
struct LayerTensors {
  const GgufTensor* attn_norm;    ///< [dim]
  const GgufTensor* attn_q;       ///< [heads * head_dim, dim]
  const GgufTensor* attn_k;       ///< [kv_heads * head_dim, dim]
  const GgufTensor* attn_v;       ///< [kv_heads * head_dim, dim]
  const GgufTensor* attn_output;  ///< [dim, heads * head_dim]
  const GgufTensor* ffn_norm;     ///< [dim]
  const GgufTensor* ffn_gate;     ///< [ffn_dim, dim]
  const GgufTensor* ffn_up;       ///< [ffn_dim, dim]
  const GgufTensor* ffn_down;     ///< [dim, ffn_dim]
};

/// All tensors of a llama model, bound by name and checked against the metadata.
struct LlamaTensors {
  const GgufTensor* token_embd;    ///< [vocab_size, dim]
  const GgufTensor* output;        ///< [vocab_size, dim]; token_embd itself where tied
  const GgufTensor* output_norm;   ///< [dim]
  const GgufTensor* rope_factors;  ///< [rope_dims / 2] divides the frequencies; nullptr = none
  std::vector<LayerTensors> layers;
};

/// The architecture's numbers. kInvalidArgument names the key: another architecture, a missing or
/// zero count, heads that don't divide, a width that is not a multiple of 32 (the kernels' lane),
/// an oversized head, RoPE scaling that isn't
/// implemented, a vocabulary size other than the tokenizer's.
Result<ModelInfo> ReadModelInfo(const Gguf& gguf);

/// kInvalidArgument names the tensor: missing, of another shape than `info` says, or not part of
/// the architecture (a bias, an expert), which would make the output silently wrong.
Result<LlamaTensors> BindTensors(const Gguf& gguf, const ModelInfo& info);

/// Rows of several matrices, one below the other, as one f32 matrix: fused projections.
/// REQUIRES: equal cols.
std::vector<float> DequantizeStacked(std::span<const GgufTensor* const> tensors);

}  // namespace hidane::model
