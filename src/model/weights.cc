#include "model/weights.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <set>
#include <string>

#include "base/assert.h"
#include "model/dequantize.h"

namespace hidane::model {
namespace {

constexpr uint64_t kLayersMax = 1024;
constexpr uint64_t kWidthMax = 1 << 20;    // dim, ffn_dim, heads * head_dim
constexpr uint64_t kHeadDimMax = 256;      // what the attention kernels take
constexpr uint64_t kContextMax = 1 << 20;  // tokens
constexpr uint32_t kLane = 32;             // the kernels' common divisor of widths

tl::unexpected<Error> Bad(std::string what) {
  return Fail(Code::kInvalidArgument, "model: " + std::move(what));
}

/// An absent key is as wrong as a bad value: both are the file's fault.
template <class T>
Result<T> Required(Result<T> value) {
  if (!value && value.error().code == Code::kNotFound) return Bad(value.error().what);
  return value;
}

/// Reads "llama.<key>" as a count within 1..max.
Result<uint32_t> Count(const Gguf& gguf, std::string_view key, uint64_t max) {
  HIDANE_TRY(const auto value, Required(gguf.Uint(fmt::format("llama.{}", key))));
  if (value < 1 || value > max) {
    return Bad(fmt::format("llama.{} = {} is not in 1..{}", key, value, max));
  }
  return static_cast<uint32_t>(value);
}

Result<uint32_t> CountOr(const Gguf& gguf, std::string_view key, uint64_t max, uint32_t fallback) {
  if (gguf.metadata().contains(fmt::format("llama.{}", key))) return Count(gguf, key, max);
  return fallback;
}

Result<float> Positive(Result<double> value, std::string_view key) {
  HIDANE_TRY(const auto number, Required(std::move(value)));
  if (!std::isfinite(number) || number <= 0) {
    return Bad(fmt::format("{} = {} is not positive", key, number));
  }
  return static_cast<float>(number);
}

Status ReadHeads(const Gguf& gguf, ModelInfo& info) {
  HIDANE_TRY(info.heads, Count(gguf, "attention.head_count", kWidthMax));
  HIDANE_TRY(info.kv_heads, CountOr(gguf, "attention.head_count_kv", kWidthMax, info.heads));
  if (info.heads % info.kv_heads != 0) {
    return Bad(
        fmt::format("{} heads are not a multiple of {} KV heads", info.heads, info.kv_heads));
  }
  const bool has_key_length = gguf.metadata().contains("llama.attention.key_length");
  if (!has_key_length && info.dim % info.heads != 0) {
    return Bad(fmt::format("{} heads do not divide the dimension {}", info.heads, info.dim));
  }
  HIDANE_TRY(info.head_dim,
             CountOr(gguf, "attention.key_length", kHeadDimMax, info.dim / info.heads));
  HIDANE_TRY(const auto value_length,
             CountOr(gguf, "attention.value_length", kHeadDimMax, info.head_dim));
  if (value_length != info.head_dim) {
    return Bad(
        fmt::format("value length {} differs from key length {}", value_length, info.head_dim));
  }
  if (info.head_dim == 0 || info.head_dim % kLane != 0 || info.head_dim > kHeadDimMax) {
    return Bad(fmt::format("head dimension {} is not a multiple of {} up to {}", info.head_dim,
                           kLane, kHeadDimMax));
  }
  if (uint64_t{info.heads} * info.head_dim > kWidthMax) {
    return Bad(fmt::format("{} heads of {} are too wide", info.heads, info.head_dim));
  }
  return {};
}

Status ReadRope(const Gguf& gguf, ModelInfo& info) {
  HIDANE_TRY(info.rope_dims, CountOr(gguf, "rope.dimension_count", info.head_dim, info.head_dim));
  if (info.rope_dims % 2 != 0) {
    return Bad(fmt::format("llama.rope.dimension_count = {} is odd", info.rope_dims));
  }
  HIDANE_TRY(info.rope_theta, Positive(OrDefault(gguf.Float("llama.rope.freq_base"), 10000.0),
                                       "llama.rope.freq_base"));
  HIDANE_TRY(const auto scaling,
             OrDefault(gguf.String("llama.rope.scaling.type"), std::string_view("none")));
  if (scaling != "none") {
    return Bad(fmt::format("llama.rope.scaling.type \"{}\" is not implemented", scaling));
  }
  return {};
}

Status ReadVocabulary(const Gguf& gguf, ModelInfo& info) {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  const auto tokens = gguf.metadata().find(kTokens);
  if (tokens == gguf.metadata().end() || !tokens->second.is_array) {
    return Bad(fmt::format("no array {}", kTokens));
  }
  const uint64_t n = tokens->second.count;
  if (n < 1 || n > kWidthMax) return Bad(fmt::format("{} tokens are not in 1..{}", n, kWidthMax));
  info.vocab_size = static_cast<uint32_t>(n);
  HIDANE_TRY(const auto stated, CountOr(gguf, "vocab_size", kWidthMax, info.vocab_size));
  if (stated != info.vocab_size) {
    return Bad(fmt::format("llama.vocab_size = {} but {} tokens", stated, info.vocab_size));
  }
  return {};
}

/// Finds tensors by name, checks their shape and remembers which were asked for.
class TensorBinder {
 public:
  TensorBinder(const Gguf& gguf, const ModelInfo& info) : gguf_(gguf), info_(info) {}

  Result<LlamaTensors> Bind() {
    LlamaTensors t{};
    const uint64_t dim = info_.dim, vocab = info_.vocab_size;
    HIDANE_TRY(t.token_embd, Matrix("token_embd", vocab, dim));
    t.output = t.token_embd;
    if (Has("output.weight")) {
      HIDANE_TRY(t.output, Matrix("output", vocab, dim));
    }
    HIDANE_TRY(t.output_norm, Vector("output_norm.weight", dim));
    if (Has("rope_freqs.weight")) {
      HIDANE_TRY(t.rope_factors, Vector("rope_freqs.weight", info_.rope_dims / 2));
    }
    for (uint32_t i = 0; i < info_.layers; ++i) {
      HIDANE_TRY(const auto layer, Layer(fmt::format("blk.{}.", i)));
      t.layers.push_back(layer);
    }
    for (const auto& [name, tensor] : gguf_.tensors()) {
      if (!bound_.contains(name)) return Bad(fmt::format("tensor {} is not part of llama", name));
    }
    return t;
  }

 private:
  bool Has(std::string_view name) const { return gguf_.FindTensor(name) != nullptr; }

  Result<LayerTensors> Layer(const std::string& prefix) {
    LayerTensors l{};
    const uint64_t dim = info_.dim, ffn = info_.ffn_dim;
    const uint64_t q = uint64_t{info_.heads} * info_.head_dim;
    const uint64_t kv = uint64_t{info_.kv_heads} * info_.head_dim;
    HIDANE_TRY(l.attn_norm, Vector(prefix + "attn_norm.weight", dim));
    HIDANE_TRY(l.attn_q, Matrix(prefix + "attn_q", q, dim));
    HIDANE_TRY(l.attn_k, Matrix(prefix + "attn_k", kv, dim));
    HIDANE_TRY(l.attn_v, Matrix(prefix + "attn_v", kv, dim));
    HIDANE_TRY(l.attn_output, Matrix(prefix + "attn_output", dim, q));
    HIDANE_TRY(l.ffn_norm, Vector(prefix + "ffn_norm.weight", dim));
    HIDANE_TRY(l.ffn_gate, Matrix(prefix + "ffn_gate", ffn, dim));
    HIDANE_TRY(l.ffn_up, Matrix(prefix + "ffn_up", ffn, dim));
    HIDANE_TRY(l.ffn_down, Matrix(prefix + "ffn_down", dim, ffn));
    return l;
  }

  Result<const GgufTensor*> Matrix(const std::string& name, uint64_t rows, uint64_t cols) {
    return Find(name + ".weight", 2, rows, cols);
  }
  Result<const GgufTensor*> Vector(const std::string& name, uint64_t size) {
    return Find(name, 1, 1, size);
  }

  Result<const GgufTensor*> Find(const std::string& name, uint32_t n_dims, uint64_t rows,
                                 uint64_t cols) {
    const GgufTensor* tensor = gguf_.FindTensor(name);
    if (tensor == nullptr) return Bad(fmt::format("no tensor {}", name));
    if (tensor->n_dims != n_dims || tensor->rows() != rows || tensor->cols() != cols) {
      return Bad(fmt::format("tensor {} is {} x {} ({} dimensions), not {} x {}", name,
                             tensor->rows(), tensor->cols(), tensor->n_dims, rows, cols));
    }
    bound_.insert(name);
    return tensor;
  }

  const Gguf& gguf_;
  const ModelInfo& info_;
  std::set<std::string, std::less<>> bound_;
};

}  // namespace

Result<ModelInfo> ReadModelInfo(const Gguf& gguf) {
  ModelInfo info{};
  HIDANE_TRY(info.architecture, Required(gguf.String("general.architecture")));
  if (info.architecture != "llama") {
    return Bad(fmt::format("architecture \"{}\" is not llama", info.architecture));
  }
  HIDANE_TRY(info.name, OrDefault(gguf.String("general.name"), std::string_view("model")));
  HIDANE_TRY(info.layers, Count(gguf, "block_count", kLayersMax));
  HIDANE_TRY(info.dim, Count(gguf, "embedding_length", kWidthMax));
  HIDANE_TRY(info.ffn_dim, Count(gguf, "feed_forward_length", kWidthMax));
  if (info.dim % kLane != 0 || info.ffn_dim % kLane != 0) {
    return Bad(
        fmt::format("dimension {} or {} is not a multiple of {}", info.dim, info.ffn_dim, kLane));
  }
  HIDANE_TRY(info.context_length, Count(gguf, "context_length", kContextMax));
  HIDANE_TRY(info.norm_eps, Positive(gguf.Float("llama.attention.layer_norm_rms_epsilon"),
                                     "llama.attention.layer_norm_rms_epsilon"));
  HIDANE_CHECK_OK(ReadHeads(gguf, info));
  HIDANE_CHECK_OK(ReadRope(gguf, info));
  HIDANE_CHECK_OK(ReadVocabulary(gguf, info));
  return info;
}

Result<LlamaTensors> BindTensors(const Gguf& gguf, const ModelInfo& info) {
  return TensorBinder(gguf, info).Bind();
}

std::vector<float> DequantizeStacked(std::span<const GgufTensor* const> tensors) {
  size_t total = 0;
  for (const auto* tensor : tensors) {
    HIDANE_ASSERT(tensor->cols() == tensors[0]->cols());
    total += tensor->rows() * tensor->cols();
  }
  std::vector<float> stacked(total);
  size_t at = 0;
  for (const auto* tensor : tensors) {
    const size_t size = tensor->rows() * tensor->cols();
    Dequantize(tensor->type, tensor->data, std::span(stacked).subspan(at, size));
    at += size;
  }
  return stacked;
}

}  // namespace hidane::model
