#pragma once
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

/// Counts every heap allocation of a program. It replaces the global operator new, so include it in
/// one source file of a test or a benchmark, never in a library, and not under a sanitizer, which
/// brings an allocator of its own that must not be replaced by half.
#ifdef HIDANE_SANITIZED
#error "counted_new.h under a sanitizer"
#endif

namespace hidane {

/// Since the program began. Any thread.
inline std::atomic<size_t> g_allocations = 0;

}  // namespace hidane

void* operator new(size_t size) {
  hidane::g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
