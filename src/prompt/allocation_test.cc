// A sanitizer brings an allocator of its own, which must not be replaced by half.
#ifndef HIDANE_SANITIZED
#include <gtest/gtest.h>

#include <string>

#include "base/counted_new.h"
#include "prompt/body_reader.h"

namespace hidane::prompt {
namespace {

TEST(AllocationTest, AReaderThatHasSeenABodyAllocatesNothingForTheNextOne) {
  std::string json = R"({"model":"m","stream":true,"tools":[{"name":")" + std::string(60'000, 't') +
                     R"("}],"messages":[{"role":"system","content":"be brief"})";
  for (int i = 0; i < 200; ++i) json += R"(,{"role":"user","content":"caf\u00e9 \/ more"})";
  json += "]}";
  const size_t size = json.size();
  json.append(BodyReader::kPadding, ' ');
  BodyReader reader;
  Body body;
  const auto read = [&] {
    return reader.Read(Api::kChat, {json.data(), size}, json.size(), {}, body).has_value();
  };
  ASSERT_TRUE(read());
  ASSERT_TRUE(read());
  const size_t before = g_allocations;
  ASSERT_TRUE(read());
  EXPECT_EQ(g_allocations - before, 0u);
  EXPECT_EQ(body.identity.message_ends.size(), 201u);
}

}  // namespace
}  // namespace hidane::prompt

#endif  // HIDANE_SANITIZED
