// A sanitizer brings an allocator of its own, which must not be replaced by half.
#ifndef HIDANE_SANITIZED
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "prompt/body_reader.h"

namespace {
std::atomic<size_t> allocations = 0;
}  // namespace

// The test program counts every allocation.
void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}

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
  const size_t before = allocations;
  ASSERT_TRUE(read());
  EXPECT_EQ(allocations - before, 0u);
  EXPECT_EQ(body.identity.message_ends.size(), 201u);
}

}  // namespace
}  // namespace hidane::prompt

#endif  // HIDANE_SANITIZED
