#pragma once
#include <cstddef>
#include <vector>

namespace hidane::model {

/// Asks for huge pages behind a mapping; a hint. Weights are read from end to end for every token:
/// with 4 KiB pages, address translation is a good part of that (twice so in a virtual machine).
void AdviseHugePages(void* address, size_t bytes);

/// Memory handed out piece by piece from large mappings, all of it freed with the arena. Pieces
/// start on a cache line.
class HugeArena {
 public:
  HugeArena() = default;
  ~HugeArena();
  HugeArena(const HugeArena&) = delete;
  HugeArena& operator=(const HugeArena&) = delete;

  /// Zeroed. Aborts the process when memory is refused (std::bad_alloc).
  std::byte* Allocate(size_t bytes);

 private:
  struct Chunk {
    std::byte* data;
    size_t bytes;
  };
  std::vector<Chunk> chunks_;
  size_t used_ = 0;  ///< of the last chunk
};

}  // namespace hidane::model
