#include "model/llama.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "model/kv_rows.h"
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

void ClearLast(const SlotSignals& signals, size_t slots) {
  for (size_t at = 0; at < signals.last.size(); at += signals.stride) {
    std::fill_n(signals.last.data() + at, slots, 0.0f);
  }
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
  for (uint32_t i = 0; i < info().layers; ++i) RunLayer(i);
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
  asking_.clear();
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
    const auto dead = seq.dead.first(seq.dead.size() / info().layers);  // the first layer's
    const auto write = seq.write_slots.first(seq.write_slots.size() / info().layers);
    HIDANE_ASSERT(write.empty() || (seq.n_tokens == 1 && write.size() == info().kv_heads));
    if (seq.signals != nullptr) {
      asking_.push_back({static_cast<uint32_t>(seqs_.size()), seq.signals});
      ClearLast(*seq.signals, slots);
    }
    seqs_.push_back({first_row, seq.n_tokens, seq.active_length, seq.block_table, write, dead});
    if (seq.want_logits) {
      const uint32_t before_last = seq.n_tokens - 1;
      wanted_.push_back(
          {first_row + before_last, 1, seq.active_length + before_last, seq.block_table, {}, dead});
    }
    for (uint32_t i = 0; i < seq.n_tokens; ++i) positions_.push_back(seq.first_position + i);
  }
  HIDANE_ASSERT(positions_.size() == batch.tokens.size());
  rows_ = static_cast<uint32_t>(positions_.size());
  if (!asking_.empty()) lse_.resize(size_t{step_tokens_max_} * info().heads);
}

void Llama::RunLayer(uint32_t index) {
  Kernels& kernels = *parts_.kernels;
  const ModelInfo& m = info();
  const Layer& layer = layers_[index];

  kernels.RmsNorm(x_.read(), rows_, layer.attn_norm, m.norm_eps, normed_);
  layer.qkv->Apply(normed_.read(), rows_, qkv_);
  kernels.Rope(qkv_, m.heads + m.kv_heads, m.head_dim, positions_, rope_);  // Q and K alike
  kernels.StoreKv(qkv_.read(q_width_), qkv_.read(q_width_ + kv_width_), seqs_, parts_.layout,
                  parts_.kv.layer(index));
  Attend(index, index + 1 == m.layers);
  if (rows_ == 0) return;
  layer.attn_output->Apply(mixed_.read(), rows_, x_, Linear::Output::kAdd);

  kernels.RmsNorm(x_.read(), rows_, layer.ffn_norm, m.norm_eps, normed_);
  layer.gate_up->Apply(normed_.read(), rows_, gate_up_);
  kernels.SiluMul(gate_up_.read(), rows_, m.ffn_dim, activated_);
  layer.ffn_down->Apply(activated_.read(), rows_, x_, Linear::Output::kAdd);
}

/// Q to mixed_. Once the last layer's K and V are stored, only the rows whose logits are wanted
/// have something left to give, unless a policy asks what the others attend to.
void Llama::Attend(uint32_t index, bool is_last) {
  Kernels& kernels = *parts_.kernels;
  const ModelInfo& m = info();
  const KvLayer kv = parts_.kv.layer(index);
  const float scale = 1.0f / std::sqrt(static_cast<float>(m.head_dim));
  if (is_last && asking_.empty()) KeepWantedRows(qkv_);
  if (rows_ == 0) return;
  const auto lse = std::span(lse_).first(asking_.empty() ? 0 : size_t{rows_} * m.heads);
  kernels.Attention(qkv_.read(), m.heads, scale, seqs_, parts_.layout, kv, mixed_, lse);
  for (const Asking& asking : asking_) {
    kernels.Signals(qkv_.read(), m.heads, scale, seqs_[asking.seq], parts_.layout, kv, lse,
                    asking.signals->Layer(index, m.heads));
  }
  if (is_last && !asking_.empty()) KeepWantedRows(mixed_);
  NextLayerOfSlots();
}

/// What a sequence says of single slots, it says for each layer.
void Llama::NextLayerOfSlots() {
  for (auto* seqs : {&seqs_, &wanted_}) {
    for (AttentionSeq& s : *seqs) {
      s.write_slots = {s.write_slots.data() + s.write_slots.size(), s.write_slots.size()};
      s.dead = {s.dead.data() + s.dead.size(), s.dead.size()};
    }
  }
}

/// `attended`: Q, or what attention made of it.
void Llama::KeepWantedRows(Rows attended) {
  const Rows x = x_;
  for (uint32_t to = 0; to < wanted_.size(); ++to) {
    const uint32_t from = std::exchange(wanted_[to].first_row, to);  // from >= to
    if (from == to) continue;
    std::memcpy(x.row(to), x.row(from), info().dim * sizeof(float));
    std::memcpy(attended.row(to), attended.row(from), q_width_ * sizeof(float));
  }
  seqs_.swap(wanted_);
  rows_ = static_cast<uint32_t>(seqs_.size());
}

void Llama::MoveRows(KvUnit unit, std::span<const RowMove> moves) {
  model::MoveRows(parts_.kv, parts_.layout, unit, moves);
}

void Llama::SaveSlots(std::span<const BlockId> block_table, uint32_t slots,
                      std::span<std::byte> bytes) const {
  model::SaveSlots(parts_.kv, parts_.layout, block_table, slots, bytes);
}

void Llama::LoadSlots(std::span<const BlockId> block_table, uint32_t slots,
                      std::span<const std::byte> bytes) {
  model::LoadSlots(parts_.kv, parts_.layout, block_table, slots, bytes);
}

void Llama::ReadKeys(uint32_t layer, uint32_t kv_head, std::span<const BlockId> block_table,
                     uint32_t first, uint32_t n, std::span<float> out) const {
  model::ReadKeys(parts_.kv, parts_.layout, layer, kv_head, block_table, first, n, out);
}

}  // namespace hidane::model
