#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory_resource>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "hidane_vtoken.h"
#include "vtoken/block_pool_adapter.h"
#include "vtoken/epoch.h"
#include "vtoken/memory.h"
#include "vtoken/sequence_kv.h"

/// Behind the C interface: one context, and how calls become codes. Internal to c_*.cc.
namespace hidane::vtoken {

/// The host's callbacks as an adapter.
class HostPool final : public BlockPoolAdapter {
 public:
  explicit HostPool(const hidane_vt_host& host) : host_(host) {}
  Result<uint32_t> RefCount(BlockId block) const override;
  Result<bool> Pinned(BlockId block) const override;
  Result<BlockId> Allocate() override;
  Status Retain(BlockId block) override;
  Status Release(BlockId block) override;
  Status Unpublish(BlockId block) override;

 private:
  hidane_vt_host host_;
};

/// The host's memory; operator new if it brings none.
class HostMemory final : public std::pmr::memory_resource {
 public:
  explicit HostMemory(const hidane_vt_host& host) : host_(host) {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  hidane_vt_host host_;
};

struct CSequence {
  CSequence(const SequenceShape& shape, Memory memory) : kv(shape, memory), told(memory) {}

  SequenceKv kv;
  Vector<BlockId> told;  // the table as the host last heard of it
};

/// Nothing thrown gets past it.
template <class Fn>
int32_t Guarded(Fn&& fn) noexcept {
  try {
    return fn();
  } catch (const std::bad_alloc&) {
    return HIDANE_VT_NO_MEMORY;
  } catch (...) {
    return HIDANE_VT_INTERNAL;
  }
}

}  // namespace hidane::vtoken

struct hidane_vt_context {
  hidane_vt_context(const hidane_vt_options& o, const hidane_vt_host& h)
      : options(o),
        host(h),
        memory(h),
        pool(h),
        epoch(pool, &memory),
        seqs(&memory),
        planned(&memory),
        blob(&memory) {}

  hidane::Result<hidane::vtoken::CSequence*> Find(hidane_vt_seq seq);
  /// A sequence as `make` returns it, under a name of its own.
  template <class Fn>
  hidane::Status Add(hidane_vt_seq* out, Fn&& make);
  hidane::vtoken::SequenceShape shape() const;
  /// Keeps and logs what went wrong.
  void Tell(std::string_view what);
  /// The code of `status`; tells what it says.
  int32_t Answer(const hidane::Status& status);
  /// Runs a call.
  template <class Fn>
  int32_t Call(Fn&& fn) noexcept {
    const int32_t code = hidane::vtoken::Guarded([&] { return Answer(fn()); });
    if (code == HIDANE_VT_NO_MEMORY) Tell("no memory");
    return code;
  }
  /// Runs a call on each item, whatever becomes of the others. The first failure is the whole's.
  template <class Item, class Fn>
  int32_t CallEach(Item* items, uint32_t n, Fn&& fn) noexcept {
    int32_t first = HIDANE_VT_OK;
    std::array<char, 256> text;
    for (uint32_t i = 0; i < n; ++i) {
      items[i].result = Call([&] { return fn(items[i]); });
      if (first != HIDANE_VT_OK || items[i].result == HIDANE_VT_OK) continue;
      first = items[i].result;
      text = error;
    }
    if (first != HIDANE_VT_OK) error = text;
    return first;
  }

  template <class T>
  using Allocator = hidane::vtoken::Allocator<T>;
  using Sequences = std::map<hidane_vt_seq, hidane::vtoken::CSequence, std::less<>,
                             Allocator<std::pair<const hidane_vt_seq, hidane::vtoken::CSequence>>>;

  hidane_vt_options options;
  hidane_vt_host host;
  hidane::vtoken::HostMemory memory;
  hidane::vtoken::HostPool pool;
  hidane::vtoken::Epoch epoch;
  Sequences seqs;
  hidane_vt_seq last_seq = 0;
  uint64_t epochs = 0, digest = 0;  // of the open plan
  bool open = false;
  hidane::vtoken::Vector<hidane_vt_seq> planned;  // in the open plan
  hidane::vtoken::Vector<std::byte> blob;         // of the open plan
  std::array<char, 256> error = {};               // needs no memory to speak of having none
};

// Its place comes first: without one, the blocks that it holds would be lost.
template <class Fn>
hidane::Status hidane_vt_context::Add(hidane_vt_seq* out, Fn&& make) {
  Sequences entry(seqs.get_allocator());
  auto& seq = entry.try_emplace(last_seq + 1, shape(), &memory).first->second;
  HIDANE_TRY(seq.kv, make());
  seqs.merge(entry);
  *out = ++last_seq;
  return {};
}

namespace hidane::vtoken {

/// kInvalidArgument unless the caller's struct is one that this library knows. `least`: its size
/// when it was shorter.
template <class T>
Status CheckStruct(const T* value, size_t least = sizeof(T)) {
  if (value == nullptr) return Fail(Code::kInvalidArgument, "a pointer is null");
  if (value->size < least || value->version != HIDANE_VT_ABI) {
    return Fail(Code::kInvalidArgument, "a struct of another size or version");
  }
  return {};
}

template <class T>
Status CheckStructs(const T* values, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) HIDANE_CHECK_OK(CheckStruct(&values[i]));
  return {};
}

/// Writes `n` and copies, or kTooLarge when they don't fit.
template <class T>
Status CopyOut(std::span<const T> values, T* out, size_t capacity, auto* n) {
  if (n == nullptr) return Fail(Code::kInvalidArgument, "a pointer is null");
  *n = static_cast<std::remove_pointer_t<decltype(n)>>(values.size());
  if (values.size() > capacity) return Fail(Code::kTooLarge, "the buffer is too small");
  if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
  return {};
}

}  // namespace hidane::vtoken
