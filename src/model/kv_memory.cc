#include "model/kv_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

namespace hidane::model {

Result<KvMemory> KvMemory::Allocate(const KvLayout& layout, uint32_t blocks) {
  constexpr size_t kCacheLine = 64;
  size_t array = 0, total = 0;
  bool overflows = __builtin_mul_overflow(layout.block_bytes(), size_t{blocks}, &array);
  overflows |= __builtin_add_overflow(array, kCacheLine - 1, &array);
  array = array / kCacheLine * kCacheLine;
  overflows |= __builtin_mul_overflow(array, size_t{layout.layers} * 2, &total);
  void* base = overflows || total == 0 ? MAP_FAILED
                                       : ::mmap(nullptr, total, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return Fail(Code::kResourceExhausted,
                fmt::format("no memory for {} KV blocks of {} bytes", blocks,
                            layout.block_bytes() * layout.layers * 2));
  }
  ::madvise(base, total, MADV_HUGEPAGE);  // fewer TLB misses where the kernel has them; a hint
  return KvMemory(static_cast<std::byte*>(base), array, total);
}

KvMemory::KvMemory(KvMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      array_bytes_(other.array_bytes_),
      total_bytes_(other.total_bytes_) {}

KvMemory::~KvMemory() {
  if (base_ != nullptr) ::munmap(base_, total_bytes_);
}

}  // namespace hidane::model
