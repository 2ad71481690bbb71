#pragma once
#include <cstdint>
#include <vector>

#include "hidane_vtoken.h"

/// What the tests of the C interface share: a host and its block pool.
namespace hidane::vtoken {

template <class T>
T Init() {
  T value;
  HIDANE_VT_INIT(value);
  return value;
}

/// A pool that hands out its lowest free block.
struct TestPool {
  std::vector<uint32_t> refs;
  bool broken = false;  // ref_count fails

  static int32_t RefCount(void* user, uint32_t block, uint32_t* count) {
    const auto& pool = *static_cast<TestPool*>(user);
    *count = pool.refs[block];
    return pool.broken ? HIDANE_VT_HOST : HIDANE_VT_OK;
  }
  static int32_t Allocate(void* user, uint32_t* block) {
    std::vector<uint32_t>& refs = static_cast<TestPool*>(user)->refs;
    for (*block = 0; *block < refs.size() && refs[*block] > 0;) ++*block;
    if (*block == refs.size()) return HIDANE_VT_NO_BLOCKS;
    refs[*block] = 1;
    return HIDANE_VT_OK;
  }
  static int32_t Retain(void* user, uint32_t block) {
    ++static_cast<TestPool*>(user)->refs[block];
    return HIDANE_VT_OK;
  }
  static int32_t Release(void* user, uint32_t block) {
    --static_cast<TestPool*>(user)->refs[block];
    return HIDANE_VT_OK;
  }

  /// Its callbacks; `user` is this pool.
  hidane_vt_host Callbacks() {
    auto host = Init<hidane_vt_host>();
    host.user = this;
    host.ref_count = RefCount;
    host.allocate = Allocate;
    host.retain = Retain;
    host.release = Release;
    return host;
  }
};

}  // namespace hidane::vtoken
