#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace hidane::net {

/// Contiguous bytes with kPadding writable bytes always allocated behind them, so that a SIMD
/// parser may read past the end without a copy. Grows without initialising. Movable; a moved-from
/// buffer is empty.
class Buffer {
 public:
  static constexpr size_t kPadding = 64;  ///< simdjson's SIMDJSON_PADDING

  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return capacity_; }  ///< without the padding
  std::string_view view() const { return {data_.get(), size_}; }

  /// Room for at least `n` more bytes behind size(). Invalidates views when it has to grow.
  std::span<char> Prepare(size_t n);
  /// The first `n` bytes of Prepare's room are now part of the buffer.
  void Commit(size_t n) { size_ += n; }
  void Append(std::string_view bytes);
  /// Keeps the first `n` bytes. REQUIRES: n <= size()
  void Truncate(size_t n) { size_ = n; }
  /// Removes the first `n` bytes; moves the rest. REQUIRES: n <= size()
  void DropFront(size_t n);
  void Clear() { size_ = 0; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char[], Free> data_;
  size_t size_ = 0, capacity_ = 0;
};

/// Buffers between two uses: the next user finds memory that the kernel has mapped already. For
/// one thread.
class SpareBuffers {
 public:
  /// Keeps up to `bytes_max` of capacity, the most recently used; no single buffer over a quarter.
  explicit SpareBuffers(size_t bytes_max) : bytes_max_(bytes_max) {}

  /// The empty buffer that was used last of those with room for `n` bytes; if there is none, one
  /// that has no memory yet.
  Buffer Take(size_t n = 0);
  void Give(Buffer buffer);

 private:
  const size_t bytes_max_;
  size_t bytes_ = 0;
  std::vector<Buffer> buffers_;  // the last used at the end
};

}  // namespace hidane::net
