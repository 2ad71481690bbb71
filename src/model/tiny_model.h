#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "model/gguf_builder.h"

namespace hidane::model {

/// A llama file of about a megabyte with random weights, so that tests of the graph and of
/// what stands on it need no download. Same seed, same bytes. Every field may be changed to make a
/// file that is wrong in one way.
struct TinyModel {
  uint32_t layers = 2, dim = 128, ffn_dim = 256, heads = 4, kv_heads = 2, vocab = 96;
  uint32_t context_length = 256;
  uint32_t stated_vocab = 0;  ///< llama.vocab_size; 0 = not stated
  std::string architecture = "llama";
  std::string without_tensor;    ///< left out
  std::string without_key;       ///< left out
  std::string extra_tensor;      ///< put in, [dim]
  bool separate_output = false;  ///< output.weight instead of tied embeddings
  uint32_t norm_size = 0;        ///< of output_norm; 0 = dim
  uint64_t seed = 1;

  std::string Build() const {
    GgufBuilder b;
    uint64_t state = seed;
    AddMetadata(b);
    const uint32_t head_dim = heads == 0 ? 32 : dim / heads;
    Matrix(b, state, "token_embd.weight", vocab, dim, 1.0f);
    if (separate_output) Matrix(b, state, "output.weight", vocab, dim, 1.0f);
    Norm(b, "output_norm.weight", norm_size == 0 ? dim : norm_size);
    if (!extra_tensor.empty()) Norm(b, extra_tensor, dim);
    for (uint32_t i = 0; i < layers; ++i) {
      const std::string p = "blk." + std::to_string(i) + ".";
      Norm(b, p + "attn_norm.weight", dim);
      Norm(b, p + "ffn_norm.weight", dim);
      Matrix(b, state, p + "attn_q.weight", heads * head_dim, dim, 4.0f);
      Matrix(b, state, p + "attn_k.weight", kv_heads * head_dim, dim, 4.0f);
      Matrix(b, state, p + "attn_v.weight", kv_heads * head_dim, dim, 1.0f);
      Matrix(b, state, p + "attn_output.weight", dim, heads * head_dim, 1.0f);
      Matrix(b, state, p + "ffn_gate.weight", ffn_dim, dim, 1.0f);
      Matrix(b, state, p + "ffn_up.weight", ffn_dim, dim, 1.0f);
      Matrix(b, state, p + "ffn_down.weight", dim, ffn_dim, 1.0f);
    }
    return b.Build();
  }

 private:
  void AddMetadata(GgufBuilder& b) const {
    const auto put = [&](std::string_view key, uint32_t value) {
      if (key != without_key) b.Uint(key, value);
    };
    b.String("general.architecture", architecture);
    put("llama.block_count", layers);
    put("llama.embedding_length", dim);
    put("llama.feed_forward_length", ffn_dim);
    put("llama.attention.head_count", heads);
    put("llama.attention.head_count_kv", kv_heads);
    put("llama.context_length", context_length);
    if (stated_vocab != 0) put("llama.vocab_size", stated_vocab);
    b.Float("llama.rope.freq_base", 10000.0f);
    if (without_key != "llama.attention.layer_norm_rms_epsilon") {
      b.Float("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    }
    if (without_key == "tokenizer.ggml.tokens") return;
    std::vector<std::string> tokens(vocab);
    for (uint32_t i = 0; i < vocab; ++i) tokens[i] = "t" + std::to_string(i);
    b.Strings("tokenizer.ggml.tokens", tokens);
  }

  void Matrix(GgufBuilder& b, uint64_t& state, const std::string& name, uint64_t rows,
              uint64_t cols, float gain) const {
    std::vector<float> values(rows * cols);
    for (float& value : values) {  // uniform, of variance gain^2 / cols
      state = state * 6364136223846793005u + 1442695040888963407u;
      const float unit = static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5f;
      value = unit * gain * std::sqrt(12.0f / static_cast<float>(cols));
    }
    Add(b, name, {cols, rows}, values);
  }
  void Norm(GgufBuilder& b, const std::string& name, uint64_t size) const {
    Add(b, name, {size}, std::vector<float>(size, 1.0f));
  }
  void Add(GgufBuilder& b, const std::string& name, const std::vector<uint64_t>& dims,
           const std::vector<float>& values) const {
    if (name == without_tensor) return;
    const std::string data(reinterpret_cast<const char*>(values.data()),
                           values.size() * sizeof(float));
    b.Tensor(name, dims, static_cast<uint32_t>(TensorType::kF32), data);
  }
};

}  // namespace hidane::model
