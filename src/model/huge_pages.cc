#include "model/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace hidane::model {
namespace {

constexpr size_t kChunkBytes = size_t{32} << 20, kLine = 64;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void AdviseHugePages(void* address, size_t bytes) {
#ifdef MADV_HUGEPAGE
  ::madvise(address, bytes, MADV_HUGEPAGE);
#endif
}

HugeArena::~HugeArena() {
  for (const Chunk& chunk : chunks_) ::munmap(chunk.data, chunk.bytes);
}

std::byte* HugeArena::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kLine);
  if (chunks_.empty() || bytes > chunks_.back().bytes - used_) {
    const size_t size = std::max(bytes, kChunkBytes);
    void* const at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    AdviseHugePages(at, size);
    chunks_.push_back({static_cast<std::byte*>(at), size});
    used_ = 0;
  }
  std::byte* const piece = chunks_.back().data + used_;
  used_ += bytes;
  return piece;
}

}  // namespace hidane::model
