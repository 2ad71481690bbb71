#include "model/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "model/dequantize.h"
#include "model/tiny_model.h"

namespace hidane::model {
namespace {

Status LoadAll(const TinyModel& tiny) {
  const std::string file = tiny.Build();
  HIDANE_TRY(const auto gguf, Gguf::Parse(std::as_bytes(std::span(file))));
  HIDANE_TRY(const auto info, ReadModelInfo(gguf));
  HIDANE_TRY(const auto tensors, BindTensors(gguf, info));
  EXPECT_EQ(tensors.layers.size(), info.layers);
  return {};
}

void ExpectRefused(const std::function<void(TinyModel&)>& spoil) {
  TinyModel tiny;
  spoil(tiny);
  const Status status = LoadAll(tiny);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kInvalidArgument);
}

TEST(Weights, ReadsTheArchitecture) {
  const TinyModel tiny;
  const std::string file = tiny.Build();
  const auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
  const auto info = ReadModelInfo(*gguf);
  ASSERT_TRUE(info) << info.error().what;
  EXPECT_EQ(info->head_dim, 32u);
  EXPECT_EQ(info->rope_dims, 32u);
  EXPECT_EQ(info->vocab_size, 96u);
  const auto tensors = BindTensors(*gguf, *info);
  ASSERT_TRUE(tensors) << tensors.error().what;
  EXPECT_EQ(tensors->output, tensors->token_embd) << "tied";
}

TEST(Weights, TakesASeparateOutputMatrix) {
  TinyModel tiny;
  tiny.separate_output = true;
  EXPECT_TRUE(LoadAll(tiny));
}

TEST(Weights, MetadataThatCannotBeIsRefused) {
  ExpectRefused([](TinyModel& t) { t.architecture = "gpt2"; });
  ExpectRefused([](TinyModel& t) { t.heads = 0; });
  ExpectRefused([](TinyModel& t) { t.kv_heads = 0; });
  ExpectRefused([](TinyModel& t) { t.kv_heads = 3; });
  ExpectRefused([](TinyModel& t) { t.heads = 64; });  // head dimension 2
  ExpectRefused([](TinyModel& t) { t.heads = 6; });   // does not divide
  ExpectRefused([](TinyModel& t) { t.layers = 0; });
  ExpectRefused([](TinyModel& t) { t.ffn_dim = 100; });
  ExpectRefused([](TinyModel& t) { t.context_length = 0; });
  ExpectRefused([](TinyModel& t) { t.stated_vocab = 97; });
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon",
        "llama.context_length", "tokenizer.ggml.tokens"}) {
    ExpectRefused([key](TinyModel& t) { t.without_key = key; });
  }
}

TEST(Weights, TensorsThatDoNotFitTheMetadataAreRefused) {
  ExpectRefused([](TinyModel& t) { t.without_tensor = "token_embd.weight"; });
  ExpectRefused([](TinyModel& t) { t.without_tensor = "blk.1.ffn_up.weight"; });
  ExpectRefused([](TinyModel& t) { t.norm_size = 127; });
  ExpectRefused([](TinyModel& t) { t.extra_tensor = "blk.0.attn_q.bias"; });
}

TEST(Dequantize, HalfCoversEveryClassOfValue) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0f);
  EXPECT_EQ(HalfToFloat(0xc000), -2.0f);
  EXPECT_EQ(HalfToFloat(0x7bff), 65504.0f);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(HalfToFloat(0x83ff), -std::ldexp(1023.0f, -24));
  EXPECT_TRUE(std::signbit(HalfToFloat(0x8000)));
  EXPECT_EQ(HalfToFloat(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(HalfToFloat(0x7e00)));
}

TEST(Dequantize, Bf16RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(Bf16ToFloat(FloatToBf16(1.0f)), 1.0f);
  EXPECT_EQ(FloatToBf16(1.0f + std::ldexp(1.0f, -8)), 0x3f80);  // tie, to even
  EXPECT_EQ(FloatToBf16(1.0f + 3 * std::ldexp(1.0f, -8)), 0x3f82);
  EXPECT_TRUE(std::isnan(Bf16ToFloat(FloatToBf16(std::nanf("")))));
  for (uint32_t v = 0; v < 0x7f80; ++v) {
    ASSERT_EQ(FloatToBf16(Bf16ToFloat(static_cast<uint16_t>(v))), v);
  }
}

TEST(Dequantize, BlocksFollowTheFormat) {
  BlockQ4_1 q4{0x4000, 0xbc00, {}};  // scale 2, minimum -1
  for (uint8_t i = 0; i < 16; ++i) q4.q[i] = static_cast<uint8_t>(i | ((15 - i) << 4));
  float out[32];
  Dequantize(TensorType::kQ4_1, std::as_bytes(std::span(&q4, 1)), out);
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_EQ(out[5], 9.0f);
  EXPECT_EQ(out[16], 29.0f);
  EXPECT_EQ(out[31], -1.0f);

  BlockQ8_0 q8{0x3800, {}};  // scale 0.5
  q8.q[0] = -128;
  q8.q[31] = 127;
  Dequantize(TensorType::kQ8_0, std::as_bytes(std::span(&q8, 1)), out);
  EXPECT_EQ(out[0], -64.0f);
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[31], 63.5f);
}

}  // namespace
}  // namespace hidane::model
