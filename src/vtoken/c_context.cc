#include "vtoken/c_context.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "base/assert.h"

namespace hidane::vtoken {
namespace {

Status Answered(int32_t code, const char* call) {
  if (code == HIDANE_VT_OK) return {};
  if (code == HIDANE_VT_NO_BLOCKS) return Fail(Code::kResourceExhausted, "no KV block is free");
  return Fail(Code::kUnavailable, fmt::format("the host's {} failed with {}", call, code));
}

int32_t CodeOf(const Error& error) {
  switch (error.code) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
      return HIDANE_VT_INVALID;
    case Code::kResourceExhausted:
      return HIDANE_VT_NO_BLOCKS;
    case Code::kUnavailable:
      return HIDANE_VT_HOST;
    case Code::kTooLarge:
      return HIDANE_VT_TOO_SMALL;
    default:
      return HIDANE_VT_INTERNAL;
  }
}

}  // namespace

void* HostMemory::do_allocate(size_t bytes, size_t alignment) {
  HIDANE_ASSERT(alignment <= alignof(std::max_align_t));
  if (host_.memory_alloc == nullptr) return ::operator new(bytes);
  void* const memory = host_.memory_alloc(host_.user, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void HostMemory::do_deallocate(void* memory, size_t bytes, size_t) {
  if (host_.memory_free == nullptr) return ::operator delete(memory);
  host_.memory_free(host_.user, memory, bytes);
}

Result<uint32_t> HostPool::RefCount(BlockId block) const {
  uint32_t count = 0;
  HIDANE_CHECK_OK(Answered(host_.ref_count(host_.user, block.value(), &count), "ref_count"));
  return count;
}

Result<bool> HostPool::Pinned(BlockId block) const {
  uint32_t pinned = 0;
  if (host_.pinned == nullptr) return false;
  HIDANE_CHECK_OK(Answered(host_.pinned(host_.user, block.value(), &pinned), "pinned"));
  return pinned != 0;
}

Result<BlockId> HostPool::Allocate() {
  uint32_t block = 0;
  HIDANE_CHECK_OK(Answered(host_.allocate(host_.user, &block), "allocate"));
  return BlockId(block);
}

Status HostPool::Retain(BlockId block) {
  if (host_.retain == nullptr) return Fail(Code::kInvalidArgument, "the host has no retain");
  return Answered(host_.retain(host_.user, block.value()), "retain");
}

Status HostPool::Release(BlockId block) {
  return Answered(host_.release(host_.user, block.value()), "release");
}

Status HostPool::Unpublish(BlockId block) {
  if (host_.unpublish == nullptr) return {};
  return Answered(host_.unpublish(host_.user, block.value()), "unpublish");
}

}  // namespace hidane::vtoken

using hidane::Code;
using hidane::Fail;
using hidane::vtoken::CSequence;

hidane::Result<CSequence*> hidane_vt_context::Find(hidane_vt_seq seq) {
  const auto at = seqs.find(seq);
  if (at == seqs.end()) return Fail(Code::kNotFound, fmt::format("no sequence {}", seq));
  return &at->second;
}

hidane::vtoken::SequenceShape hidane_vt_context::shape() const {
  const auto scope = static_cast<hidane::vtoken::Scope>(options.scope);
  return {.block_size = options.block_size,
          .scope = scope,
          .units = hidane::vtoken::UnitCount(scope, options.layers, options.kv_heads),
          .mode = static_cast<hidane::vtoken::Mode>(options.mode)};
}

void hidane_vt_context::Tell(std::string_view what) {
  error[what.copy(error.data(), error.size() - 1)] = '\0';
  if (host.log != nullptr) host.log(host.user, error.data());
}

int32_t hidane_vt_context::Answer(const hidane::Status& status) {
  if (status) return HIDANE_VT_OK;
  Tell(status.error().what);
  return hidane::vtoken::CodeOf(status.error());
}
