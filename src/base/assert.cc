#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace hidane {

void AssertFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "hidane: assertion failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace hidane
