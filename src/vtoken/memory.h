#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <vector>

namespace hidane::vtoken {

/// Where what a sequence and its epochs keep comes from: nullptr is operator new. It outlives all
/// that was made with it, and throws std::bad_alloc where it has none.
using Memory = std::pmr::memory_resource*;

/// A std::allocator over `Memory`. Unlike std::pmr's it goes along when a container is copied,
/// moved or swapped, so a member made with a memory stays with it through every assignment.
template <class T>
class Allocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  Allocator(Memory memory = nullptr) : memory_(memory) {}  // implicit: Vector<T> v(memory)
  template <class U>
  Allocator(const Allocator<U>& other) : memory_(other.memory()) {}

  T* allocate(size_t n) {
    if (memory_ == nullptr) return std::allocator<T>().allocate(n);
    return static_cast<T*>(memory_->allocate(n * sizeof(T), alignof(T)));
  }
  void deallocate(T* values, size_t n) {
    if (memory_ == nullptr) return std::allocator<T>().deallocate(values, n);
    memory_->deallocate(values, n * sizeof(T), alignof(T));
  }
  Memory memory() const { return memory_; }
  bool operator==(const Allocator&) const = default;

 private:
  Memory memory_;
};

template <class T>
using Vector = std::vector<T, Allocator<T>>;

/// Room for `n` values in all, so that adding them can't fail. Grows as push_back does.
template <class T>
void MakeRoom(Vector<T>& values, size_t n) {
  if (n > values.capacity()) values.reserve(std::max(n, 2 * values.capacity()));
}

}  // namespace hidane::vtoken
