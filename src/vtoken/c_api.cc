// The C interface: contexts and sequences. Plans are in c_plan.cc, policies in c_policy.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "vtoken/c_context.h"
#include "vtoken/snapshot.h"

using hidane::BlockId;
using hidane::Code;
using hidane::Fail;
using hidane::Result;
using hidane::Status;
using hidane::vtoken::CheckStruct;
using hidane::vtoken::CheckStructs;
using hidane::vtoken::CopyOut;
using hidane::vtoken::CSequence;
using hidane::vtoken::HostMemory;
using hidane::vtoken::SequenceKv;

namespace {

// Hosts of before `memory_alloc` have a shorter struct.
Result<hidane_vt_host> KnownHost(const hidane_vt_host* h) {
  HIDANE_CHECK_OK(CheckStruct(h, offsetof(hidane_vt_host, memory_alloc)));
  hidane_vt_host known = {};
  std::memcpy(&known, h, std::min<size_t>(h->size, sizeof known));
  if (known.ref_count == nullptr || known.allocate == nullptr || known.release == nullptr ||
      (known.memory_alloc == nullptr) != (known.memory_free == nullptr)) {
    return Fail(Code::kInvalidArgument, "a callback is missing");
  }
  return known;
}

Status CheckOptions(const hidane_vt_options* o) {
  HIDANE_CHECK_OK(CheckStruct(o));
  const bool ranges = o->block_size >= 1 && o->block_size <= UINT16_MAX && o->layers >= 1 &&
                      o->kv_heads >= 1 && uint64_t{o->layers} * o->kv_heads <= 1 << 20;
  if (ranges && o->scope <= HIDANE_VT_SCOPE_KV_HEAD && o->mode <= HIDANE_VT_LAZY &&
      o->placement <= HIDANE_VT_FEWEST_MOVES) {
    return {};
  }
  return Fail(Code::kInvalidArgument, "an option is out of range");
}

template <class Fn>
int32_t Grow(hidane_vt_context* context, hidane_vt_growth* items, uint32_t n, Fn&& fn) {
  const int32_t checked = context->Call([&] { return CheckStructs(items, n); });
  if (checked != HIDANE_VT_OK) return checked;
  return context->CallEach(items, n, [&](const hidane_vt_growth& item) -> Status {
    HIDANE_TRY(CSequence* const found, context->Find(item.seq));
    return fn(found->kv, item.tokens);
  });
}

void WriteIndex(void* out, uint32_t bytes, size_t stride, size_t i, uint32_t value) {
  const uint64_t wide = value;  // little-endian: its first bytes are the narrow one's
  std::memcpy(static_cast<unsigned char*>(out) + i * stride, &wide, bytes);
}

Status WriteTable(std::span<const BlockId> table, void* out, uint32_t bytes, size_t stride,
                  uint32_t capacity, uint32_t* n) {
  if (n == nullptr || (bytes != 4 && bytes != 8) || stride < bytes) {
    return Fail(Code::kInvalidArgument, fmt::format("block indices of {} bytes", bytes));
  }
  *n = static_cast<uint32_t>(table.size());
  if (table.size() > capacity) return Fail(Code::kTooLarge, "the buffer is too small");
  for (size_t i = 0; i < table.size(); ++i) WriteIndex(out, bytes, stride, i, table[i].value());
  return {};
}

}  // namespace

uint32_t hidane_vt_abi(void) {
  return HIDANE_VT_ABI;
}

int32_t hidane_vt_create(const hidane_vt_options* options, const hidane_vt_host* host,
                         hidane_vt_context** out) {
  return hidane::vtoken::Guarded([&]() -> int32_t {
    const auto known = KnownHost(host);
    if (!known || !CheckOptions(options) || out == nullptr) return HIDANE_VT_INVALID;
    void* const place = HostMemory(*known).allocate(sizeof(hidane_vt_context));
    *out = new (place) hidane_vt_context(*options, *known);
    return HIDANE_VT_OK;
  });
}

void hidane_vt_destroy(hidane_vt_context* context) {
  if (context == nullptr) return;
  HostMemory memory = context->memory;  // outlives what lies in it
  context->~hidane_vt_context();
  memory.deallocate(context, sizeof(hidane_vt_context));
}

const char* hidane_vt_error(const hidane_vt_context* context) {
  return context->error.data();
}

int32_t hidane_vt_seq_new(hidane_vt_context* context, hidane_vt_seq* out) {
  return context->Call([&]() -> Status {
    return context->Add(out, [&]() -> Result<SequenceKv> {
      return SequenceKv(context->shape(), &context->memory);
    });
  });
}

int32_t hidane_vt_seq_adopt(hidane_vt_context* context, hidane_vt_seq seq, const uint32_t* blocks,
                            uint32_t n, uint32_t tokens) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(CSequence* const found, context->Find(seq));
    std::vector<BlockId> table;
    for (uint32_t i = 0; i < n; ++i) table.emplace_back(blocks[i]);
    return found->kv.Adopt(table, tokens);
  });
}

int32_t hidane_vt_seq_fork(hidane_vt_context* context, hidane_vt_seq seq, hidane_vt_seq* out) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(CSequence* const found, context->Find(seq));
    return context->Add(out, [&] { return found->kv.Fork(context->pool); });
  });
}

int32_t hidane_vt_seq_free(hidane_vt_context* context, hidane_vt_seq seq) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(CSequence* const found, context->Find(seq));
    Status released;
    if (found->kv.in_epoch()) {
      context->epoch.Remove(found->kv);
    } else {
      released = found->kv.Release(context->pool);
    }
    context->seqs.erase(seq);
    return released;
  });
}

int32_t hidane_vt_rollback(hidane_vt_context* context, hidane_vt_seq seq, uint32_t n) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(CSequence* const found, context->Find(seq));
    return found->kv.Rollback(context->pool, n);
  });
}

int32_t hidane_vt_reserve(hidane_vt_context* context, hidane_vt_growth* items, uint32_t n) {
  return Grow(context, items, n,
              [&](SequenceKv& kv, uint32_t tokens) { return kv.Reserve(context->pool, tokens); });
}

int32_t hidane_vt_append(hidane_vt_context* context, hidane_vt_growth* items, uint32_t n) {
  return Grow(context, items, n, [](SequenceKv& kv, uint32_t tokens) { return kv.Append(tokens); });
}

int32_t hidane_vt_seq_get(hidane_vt_context* context, hidane_vt_seq seq, hidane_vt_seq_info* info) {
  return context->Call([&]() -> Status {
    HIDANE_CHECK_OK(CheckStruct(info));
    HIDANE_TRY(const CSequence* const found, context->Find(seq));
    const SequenceKv& kv = found->kv;
    info->logical_length = kv.logical_length();
    info->active_length = kv.active_length();
    info->live_tokens = kv.live_tokens();
    info->table_blocks = static_cast<uint32_t>(kv.table().size());
    info->rollback_max = kv.rollback_max();
    info->publishable_blocks = kv.publishable_blocks();
    info->waiting = kv.waiting_slots().empty() ? 0 : 1;
    info->must_own = kv.must_own() ? 1 : 0;
    info->damaged = kv.damaged() ? 1 : 0;
    info->units = kv.shape().units;
    return {};
  });
}

int32_t hidane_vt_table(hidane_vt_context* context, hidane_vt_seq seq, void* out,
                        uint32_t index_bytes, size_t stride, uint32_t capacity, uint32_t* n) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(const CSequence* const found, context->Find(seq));
    return WriteTable(found->kv.table(), out, index_bytes, stride, capacity, n);
  });
}

int32_t hidane_vt_table_delta(hidane_vt_context* context, hidane_vt_seq seq, void* out,
                              uint32_t index_bytes, size_t stride, uint32_t capacity,
                              uint32_t* first, uint32_t* n) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(CSequence* const found, context->Find(seq));
    if (first == nullptr) return Fail(Code::kInvalidArgument, "a pointer is null");
    const auto table = found->kv.table();
    const auto same =
        std::mismatch(table.begin(), table.end(), found->told.begin(), found->told.end());
    *first = static_cast<uint32_t>(same.first - table.begin());
    HIDANE_CHECK_OK(WriteTable(table.subspan(*first), out, index_bytes, stride, capacity, n));
    found->told.assign(table.begin(), table.end());
    return {};
  });
}

int32_t hidane_vt_tokens(hidane_vt_context* context, hidane_vt_seq seq, uint32_t unit,
                         uint32_t* out, uint32_t capacity, uint32_t* n) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(const CSequence* const found, context->Find(seq));
    const SequenceKv& kv = found->kv;
    if (unit >= kv.shape().units) {
      return Fail(Code::kInvalidArgument, fmt::format("unit {} of {}", unit, kv.shape().units));
    }
    if (n == nullptr) return Fail(Code::kInvalidArgument, "a pointer is null");
    *n = kv.active_length() + (kv.waiting_slots().empty() ? 0 : 1);
    if (*n > capacity) return Fail(Code::kTooLarge, "the buffer is too small");
    for (uint32_t slot = 0; slot < *n; ++slot) {
      out[slot] = kv.live(unit, slot) ? kv.token(unit, slot) : UINT32_MAX;
    }
    return {};
  });
}

int32_t hidane_vt_waiting(hidane_vt_context* context, hidane_vt_seq seq, uint32_t* out,
                          uint32_t capacity, uint32_t* n) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(const CSequence* const found, context->Find(seq));
    return CopyOut(found->kv.waiting_slots(), out, capacity, n);
  });
}

int32_t hidane_vt_export(hidane_vt_context* context, hidane_vt_seq seq, void* out, size_t capacity,
                         size_t* size) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(const CSequence* const found, context->Find(seq));
    const auto bytes = Encode(found->kv.Export());
    return CopyOut<std::byte>(bytes, static_cast<std::byte*>(out), capacity, size);
  });
}

int32_t hidane_vt_import(hidane_vt_context* context, const void* data, size_t size,
                         hidane_vt_seq* out) {
  return context->Call([&]() -> Status {
    HIDANE_TRY(const auto snapshot,
               hidane::vtoken::Decode({static_cast<const std::byte*>(data), size}));
    return context->Add(out, [&] {
      return SequenceKv::Import(snapshot, context->shape(), context->pool, &context->memory);
    });
  });
}
