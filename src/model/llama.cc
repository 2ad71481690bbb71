#include "model/llama.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "model/rope_table.h"

namespace hidane::model {
namespace {

WeightView View(const GgufTensor* tensor) {
  return {tensor->type, tensor->data.data(), static_cast<uint32_t>(tensor->rows()),
          static_cast<uint32_t>(tensor->cols())};
}

template <class... Tensor>
std::unique_ptr<Linear> Stack(Kernels& kernels, Tensor... tensors) {
  const std::array<WeightView, sizeof...(tensors)> views = {View(tensors)...};
  return kernels.MakeLinear(views);
}

std::vector<float> Values(const GgufTensor* tensor) {
  return tensor == nullptr ? std::vector<float>() : DequantizeStacked({&tensor, 1});
}

}  // namespace

Llama::Llama(Parts parts, const LlamaTensors& tensors, const ModelOptions& options)
    : parts_(std::move(parts)),
      kv_blocks_(options.kv_blocks),
      step_tokens_max_(options.step_tokens_max),
      q_width_(info().heads * info().head_dim),
      kv_width_(info().kv_heads * info().head_dim),
      token_embd_(View(tensors.token_embd)),
      output_norm_(Values(tensors.output_norm)),
      rope_(MakeRopeTable(info().context_length, info().head_dim, info().rope_dims,
                          info().rope_theta, Values(tensors.rope_factors))),
      output_(Stack(*parts_.kernels, tensors.output)),
      x_(step_tokens_max_, info().dim),
      normed_(step_tokens_max_, info().dim),
      qkv_(step_tokens_max_, q_width_ + 2 * kv_width_),
      mixed_(step_tokens_max_, q_width_),
      gate_up_(step_tokens_max_, size_t{2} * info().ffn_dim),
      activated_(step_tokens_max_, info().ffn_dim) {
  Kernels& kernels = *parts_.kernels;
  for (const LayerTensors& t : tensors.layers) {
    layers_.push_back({Values(t.attn_norm), Values(t.ffn_norm),
                       Stack(kernels, t.attn_q, t.attn_k, t.attn_v), Stack(kernels, t.attn_output),
                       Stack(kernels, t.ffn_gate, t.ffn_up), Stack(kernels, t.ffn_down)});
  }
  kernels.FinishLinears();
  positions_.reserve(step_tokens_max_);
  seqs_.reserve(step_tokens_max_);
  wanted_.reserve(step_tokens_max_);
}

void Llama::Forward(const StepBatch& batch, std::span<float> logits) {
  BeginStep(batch);
  HIDANE_ASSERT(logits.size() == wanted_.size() * info().vocab_size);
  if (rows_ == 0) return;
  parts_.kernels->Embed(token_embd_, batch.tokens, x_);
  for (uint32_t i = 0; i < info().layers; ++i) {
    RunLayer(layers_[i], parts_.kv.layer(i), i + 1 == info().layers);
  }
  if (rows_ == 0) return;
  parts_.kernels->RmsNorm(x_.read(), rows_, output_norm_, info().norm_eps, normed_);
  output_->Apply(normed_.read(), rows_, {logits.data(), info().vocab_size});
}

void Llama::BeginStep(const StepBatch& batch) {
  HIDANE_ASSERT(batch.tokens.size() <= step_tokens_max_);
  for (const TokenId token : batch.tokens) {
    HIDANE_ASSERT(token >= 0 && static_cast<uint32_t>(token) < info().vocab_size);
  }
  positions_.clear();
  seqs_.clear();
  wanted_.clear();
  for (const SeqSlice& seq : batch.seqs) {
    const size_t slots = size_t{seq.active_length} + seq.n_tokens;
    const size_t blocks = (slots + parts_.layout.block_size - 1) / parts_.layout.block_size;
    HIDANE_ASSERT(seq.n_tokens >= 1 && seq.n_tokens <= batch.tokens.size() - positions_.size());
    HIDANE_ASSERT(size_t{seq.first_position} + seq.n_tokens <= info().context_length);
    HIDANE_ASSERT(blocks <= seq.block_table.size());
    for (const BlockId block : seq.block_table.first(blocks)) {
      HIDANE_ASSERT(block.value() < kv_blocks_);
    }
    const auto first_row = static_cast<uint32_t>(positions_.size());
    seqs_.push_back({first_row, seq.n_tokens, seq.active_length, seq.block_table});
    if (seq.want_logits) {
      const uint32_t before_last = seq.n_tokens - 1;
      wanted_.push_back(
          {first_row + before_last, 1, seq.active_length + before_last, seq.block_table});
    }
    for (uint32_t i = 0; i < seq.n_tokens; ++i) positions_.push_back(seq.first_position + i);
  }
  HIDANE_ASSERT(positions_.size() == batch.tokens.size());
  rows_ = static_cast<uint32_t>(positions_.size());
}

void Llama::RunLayer(const Layer& layer, KvLayer kv, bool is_last) {
  Kernels& kernels = *parts_.kernels;
  const ModelInfo& m = info();
  const float scale = 1.0f / std::sqrt(static_cast<float>(m.head_dim));

  kernels.RmsNorm(x_.read(), rows_, layer.attn_norm, m.norm_eps, normed_);
  layer.qkv->Apply(normed_.read(), rows_, qkv_);
  kernels.Rope(qkv_, m.heads + m.kv_heads, m.head_dim, positions_, rope_);  // Q and K alike
  kernels.StoreKv(qkv_.read(q_width_), qkv_.read(q_width_ + kv_width_), seqs_, parts_.layout, kv);
  if (is_last) KeepWantedRows();
  if (rows_ == 0) return;
  kernels.Attention(qkv_.read(), m.heads, scale, seqs_, parts_.layout, kv, mixed_);
  layer.attn_output->Apply(mixed_.read(), rows_, x_, Linear::Output::kAdd);

  kernels.RmsNorm(x_.read(), rows_, layer.ffn_norm, m.norm_eps, normed_);
  layer.gate_up->Apply(normed_.read(), rows_, gate_up_);
  kernels.SiluMul(gate_up_.read(), rows_, m.ffn_dim, activated_);
  layer.ffn_down->Apply(activated_.read(), rows_, x_, Linear::Output::kAdd);
}

/// Once the last layer's K and V are stored, the other rows have nothing left to give.
void Llama::KeepWantedRows() {
  const Rows x = x_, q = qkv_;
  for (uint32_t to = 0; to < wanted_.size(); ++to) {
    const uint32_t from = std::exchange(wanted_[to].first_row, to);  // from >= to
    if (from == to) continue;
    std::memcpy(x.row(to), x.row(from), info().dim * sizeof(float));
    std::memcpy(q.row(to), q.row(from), q_width_ * sizeof(float));
  }
  seqs_.swap(wanted_);
  rows_ = static_cast<uint32_t>(seqs_.size());
}

}  // namespace hidane::model
