#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/result.h"
#include "hidane_vtoken.h"
#include "vtoken/block_pool_adapter.h"
#include "vtoken/epoch.h"
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

struct CSequence {
  SequenceKv kv;
  std::vector<BlockId> told = {};  // the table as the host last heard of it
};

}  // namespace hidane::vtoken

struct hidane_vt_context {
  hidane_vt_context(const hidane_vt_options& o, const hidane_vt_host& h)
      : options(o), host(h), pool(h), epoch(pool) {}

  hidane::Result<hidane::vtoken::CSequence*> Find(hidane_vt_seq seq);
  hidane_vt_seq Add(hidane::vtoken::SequenceKv kv);
  hidane::vtoken::SequenceShape shape() const;
  /// The code of `status`; keeps and logs what it says.
  int32_t Answer(const hidane::Status& status);
  /// Runs a call; nothing thrown gets past it.
  template <class Fn>
  int32_t Call(Fn&& fn) noexcept {
    try {
      return Answer(fn());
    } catch (const std::bad_alloc&) {
      return HIDANE_VT_NO_MEMORY;
    } catch (...) {
      return HIDANE_VT_INTERNAL;
    }
  }

  hidane_vt_options options;
  hidane_vt_host host;
  hidane::vtoken::HostPool pool;
  hidane::vtoken::Epoch epoch;
  std::map<hidane_vt_seq, std::unique_ptr<hidane::vtoken::CSequence>> seqs;
  hidane_vt_seq last_seq = 0;
  uint64_t epochs = 0, digest = 0;  // of the open plan
  bool open = false;
  std::vector<std::byte> blob;  // of the open plan
  std::string error;
};

namespace hidane::vtoken {

/// kInvalidArgument unless the caller's struct is one that this library knows.
template <class T>
Status CheckStruct(const T* value) {
  if (value == nullptr) return Fail(Code::kInvalidArgument, "a pointer is null");
  if (value->size < sizeof(T) || value->version != HIDANE_VT_ABI) {
    return Fail(Code::kInvalidArgument, "a struct of another size or version");
  }
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
