#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "model/huge_pages.h"

namespace hidane::model {

/// Memory that grows to the largest size asked for and is then reused; starts on a cache line.
/// Growing loses the content.
class Scratch {
 public:
  template <class T>
  T* Get(size_t count) {
    size_t bytes = (count * sizeof(T) + kLine - 1) / kLine * kLine;
    const size_t alignment = bytes < kHugePage ? kLine : kHugePage;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    if (bytes > bytes_) {
      data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
      if (data_ == nullptr) throw std::bad_alloc();
      if (alignment == kHugePage) AdviseHugePages(data_.get(), bytes);
      bytes_ = bytes;
    }
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  static constexpr size_t kLine = 64, kHugePage = size_t{2} << 20;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t bytes_ = 0;
};

}  // namespace hidane::model
