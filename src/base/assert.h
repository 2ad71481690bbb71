#pragma once
/// The assertion ladder. Never on input from a peer, a file or the configuration: those return
/// a Result.
///   HIDANE_ASSERT  always on: memory safety, cheap; aborts
///   HIDANE_DCHECK  debug builds only: may cost more than O(1)
namespace hidane {
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line);
}  // namespace hidane

#define HIDANE_ASSERT(condition) \
  ((condition) ? (void)0 : ::hidane::AssertFailed(#condition, __FILE__, __LINE__))
#ifdef NDEBUG
#define HIDANE_DCHECK(condition) ((void)0)
#else
#define HIDANE_DCHECK(condition) HIDANE_ASSERT(condition)
#endif
