#include "net/buffer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace hidane::net {

std::span<char> Buffer::Prepare(size_t n) {
  if (capacity_ - size_ < n) {
    const size_t capacity = std::max(size_ + n, capacity_ * 2);
    char* grown = static_cast<char*>(std::realloc(data_.get(), capacity + kPadding));
    if (grown == nullptr) throw std::bad_alloc();
    static_cast<void>(data_.release());
    data_.reset(grown);
    capacity_ = capacity;
  }
  return {data_.get() + size_, capacity_ - size_};
}

void Buffer::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(Prepare(bytes.size()).data(), bytes.data(), bytes.size());
  size_ += bytes.size();
}

void Buffer::DropFront(size_t n) {
  if (n == 0) return;
  std::memmove(data_.get(), data_.get() + n, size_ - n);
  size_ -= n;
}

Buffer SpareBuffers::Take(size_t n) {
  const auto found = std::find_if(buffers_.rbegin(), buffers_.rend(),
                                  [n](const Buffer& b) { return b.capacity() >= n; });
  if (found == buffers_.rend()) return {};
  Buffer taken = std::move(*found);
  buffers_.erase(std::next(found).base());
  bytes_ -= taken.capacity();
  return taken;
}

void SpareBuffers::Give(Buffer buffer) {
  if (buffer.capacity() == 0 || buffer.capacity() > bytes_max_ / 4) return;
  buffer.Clear();
  bytes_ += buffer.capacity();
  buffers_.push_back(std::move(buffer));
  while (bytes_ > bytes_max_) {
    bytes_ -= buffers_.front().capacity();
    buffers_.erase(buffers_.begin());
  }
}

}  // namespace hidane::net
