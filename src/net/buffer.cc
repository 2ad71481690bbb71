#include "net/buffer.h"

#include <algorithm>
#include <cstring>
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

}  // namespace hidane::net
