#include "gateway/models.h"

#include <gtest/gtest.h>

namespace hidane::gateway {
namespace {

TEST(ModelsTest, MetadataIsKeptAndTheLengthIsConservative) {
  const auto a = ParseModels(
      R"({"data":[{"id":"m","max_model_len":32768,"root":"m","x":{"big":12345678901234567}}]})");
  const auto b = ParseModels(R"({"data":[{"id":"m","max_model_len":8192},{"id":"a"}]})");
  EXPECT_EQ(MergeModels({*a, *b}),
            R"({"object":"list","data":[{"id":"a"},)"
            R"({"id":"m","max_model_len":8192,"root":"m","x":{"big":12345678901234567}}]})");
}

TEST(ModelsTest, NoWorkerMeansAnEmptyList) {
  EXPECT_EQ(MergeModels({}), R"({"object":"list","data":[]})");
}

TEST(ModelsTest, WhatIsNoListIsRefusedAndOddEntriesAreSkipped) {
  for (const char* text : {"", "[]", "{}", "<html>", R"({"data":3})"})
    EXPECT_EQ(ParseModels(text).error().code, Code::kDataLoss) << text;
  EXPECT_EQ(ParseModels(R"({"data":[3,{"id":4},{"id":"m"}]})")->size(), 1u);
}

}  // namespace
}  // namespace hidane::gateway
