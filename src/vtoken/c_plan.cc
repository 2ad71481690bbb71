// The C interface: plans, as moves and as bytes that other processes can carry out.
#include <fmt/format.h>

#include "vtoken/c_context.h"
#include "vtoken/digest.h"

using hidane::BlockId;
using hidane::Code;
using hidane::Fail;
using hidane::Status;
using hidane::vtoken::CheckStruct;
using hidane::vtoken::CheckStructs;
using hidane::vtoken::CopyOut;
using hidane::vtoken::CSequence;
using hidane::vtoken::EpochChange;
using hidane::vtoken::SlotMove;
using hidane::vtoken::Vector;

namespace {

static_assert(sizeof(hidane_vt_move) == sizeof(SlotMove) && sizeof(SlotMove) == 12);
static_assert(sizeof(hidane_vt_blob_header) == 56 && sizeof(hidane_vt_blob_seq) == 24);
constexpr uint32_t kMagic = 0x5054'5648;  // "HVTP"

template <class T>
void Put(Vector<std::byte>& out, std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void Pad(Vector<std::byte>& out) {
  out.resize((out.size() + 7) / 8 * 8);
}

uint64_t BlobDigest(std::span<const std::byte> blob) {
  hidane_vt_blob_header header;
  std::memcpy(&header, blob.data(), sizeof header);
  header.digest = 0;
  return hidane::vtoken::Digest(blob.subspan(sizeof header),
                                hidane::vtoken::Digest(std::as_bytes(std::span(&header, 1))));
}

void PutSequence(Vector<std::byte>& out, hidane_vt_seq id, const EpochChange& change) {
  const hidane::vtoken::SequenceKv& kv = *change.seq;
  const std::span<const uint32_t> waiting = change.plan != nullptr
                                                ? std::span<const uint32_t>(change.plan->incoming)
                                                : kv.waiting_slots();
  const uint32_t open = waiting.empty() ? 0 : 1;
  const hidane_vt_blob_seq record{
      .seq = id,
      .logical_length = kv.logical_length(),
      .active_length = change.plan != nullptr ? change.plan->slots - open : kv.active_length(),
      .n_blocks = static_cast<uint32_t>(change.table.size()),
      .n_waiting = static_cast<uint32_t>(waiting.size())};
  Put(out, std::span(&record, 1));
  Put(out, change.table);
  Put(out, waiting);
  Pad(out);
}

uint64_t CountMoves(const hidane_vt_context& context) {
  uint64_t moves = 0;
  for (const auto& group : context.epoch.groups()) moves += group.moves.size();
  return moves;
}

// At least as many bytes as WriteBlob will write.
size_t BlobBound(hidane_vt_context& context) {
  const hidane::vtoken::EpochStats planned = context.epoch.planned();
  size_t blocks = planned.blocks_fresh;
  for (const hidane_vt_seq id : context.planned) blocks += context.seqs.at(id).kv.table().size();
  const size_t each = sizeof(hidane_vt_blob_seq) + size_t{4} * context.shape().units + 8;
  return sizeof(hidane_vt_blob_header) + planned.moves * sizeof(hidane_vt_move) + 8 +
         context.planned.size() * each + 4 * blocks;
}

void WriteBlob(hidane_vt_context& context) {
  Vector<std::byte>& blob = context.blob;
  const auto shape = context.shape();
  hidane_vt_blob_header header{.magic = kMagic,
                               .abi = HIDANE_VT_ABI,
                               .epoch = context.epochs,
                               .digest = 0,
                               .bytes = 0,
                               .n_moves = CountMoves(context),
                               .n_sequences = static_cast<uint32_t>(context.planned.size()),
                               .block_size = shape.block_size,
                               .scope = context.options.scope,
                               .units = shape.units};
  blob.assign(sizeof header, std::byte{0});
  for (const auto& group : context.epoch.groups()) Put(blob, group.moves);
  Pad(blob);
  for (size_t i = 0; i < context.planned.size(); ++i) {
    PutSequence(blob, context.planned[i], context.epoch.changes()[i]);
  }
  header.bytes = blob.size();
  std::memcpy(blob.data(), &header, sizeof header);
  context.digest = header.digest = BlobDigest(blob);
  std::memcpy(blob.data(), &header, sizeof header);
}

// Nothing is staged yet.
Status BeginPlan(hidane_vt_context& context, std::span<const hidane_vt_eviction> items,
                 hidane_vt_plan_info* info) {
  HIDANE_CHECK_OK(CheckStruct(info));
  HIDANE_CHECK_OK(CheckStructs(items.data(), static_cast<uint32_t>(items.size())));
  if (context.open) return Fail(Code::kInvalidArgument, "a plan is open");
  info->epoch = 0;
  context.planned.clear();
  MakeRoom(context.planned, items.size());
  return {};
}

Status Stage(hidane_vt_context& context, const hidane_vt_eviction& item) {
  HIDANE_TRY(CSequence* const seq, context.Find(item.seq));
  if (item.incoming > 1) return Fail(Code::kInvalidArgument, "incoming is 0 or 1");
  const hidane::vtoken::RepairOptions options{
      .incoming = item.incoming,
      .placement = static_cast<hidane::vtoken::Placement>(context.options.placement)};
  if (item.n_victims == 0) {
    HIDANE_CHECK_OK(context.epoch.Repair(seq->kv, options));
  } else {
    HIDANE_CHECK_OK(context.epoch.Evict(seq->kv, {item.victims, item.n_victims}, options));
  }
  context.planned.push_back(item.seq);
  return {};
}

void Describe(const hidane_vt_context& context, hidane_vt_plan_info& info) {
  info.epoch = context.epochs;
  info.digest = context.digest;
  const hidane::vtoken::EpochStats planned = context.epoch.planned();
  info.moves = planned.moves;
  info.moves_bound = planned.moves_bound;
  info.sequences = planned.sequences;
  info.blocks_freed = planned.blocks_freed;
  info.blocks_fresh = planned.blocks_fresh;
}

// Memory first: once blocks are out of the prefix cache only the host can fail.
Status OpenPlan(hidane_vt_context& context, hidane_vt_plan_info& info) {
  MakeRoom(context.blob, BlobBound(context));
  HIDANE_CHECK_OK(context.epoch.Seal());
  context.open = true;
  ++context.epochs;
  WriteBlob(context);
  Describe(context, info);
  return {};
}

Status EndPlan(hidane_vt_context& context, bool commit) {
  context.open = false;
  return commit ? context.epoch.Commit() : context.epoch.Abort();
}

}  // namespace

int32_t hidane_vt_plan(hidane_vt_context* context, hidane_vt_eviction* items, uint32_t n,
                       hidane_vt_plan_info* info) {
  const int32_t begun = context->Call([&] { return BeginPlan(*context, {items, n}, info); });
  if (begun != HIDANE_VT_OK) return begun;
  const int32_t first = context->CallEach(
      items, n, [&](const hidane_vt_eviction& item) { return Stage(*context, item); });
  const int32_t opened = context->Call([&] { return OpenPlan(*context, *info); });
  if (opened == HIDANE_VT_NO_MEMORY) context->Call([&] { return context->epoch.Abort(); });
  return opened != HIDANE_VT_OK ? opened : first;
}

int32_t hidane_vt_plan_moves(hidane_vt_context* context, hidane_vt_move* out, size_t capacity,
                             size_t* n) {
  return context->Call([&]() -> Status {
    if (!context->open || n == nullptr) return Fail(Code::kInvalidArgument, "no plan is open");
    *n = CountMoves(*context);
    if (*n > capacity) return Fail(Code::kTooLarge, "the buffer is too small");
    for (const auto& group : context->epoch.groups()) {
      std::memcpy(out, group.moves.data(), group.moves.size_bytes());
      out += group.moves.size();
    }
    return {};
  });
}

int32_t hidane_vt_plan_blob(hidane_vt_context* context, void* out, size_t capacity, size_t* size) {
  return context->Call([&]() -> Status {
    if (!context->open) return Fail(Code::kInvalidArgument, "no plan is open");
    return CopyOut<std::byte>(context->blob, static_cast<std::byte*>(out), capacity, size);
  });
}

int32_t hidane_vt_commit(hidane_vt_context* context, uint64_t epoch, uint64_t digest) {
  return context->Call([&]() -> Status {
    if (!context->open || epoch != context->epochs || digest != context->digest) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("epoch {} with digest {:x} is not the open plan", epoch, digest));
    }
    return EndPlan(*context, true);
  });
}

int32_t hidane_vt_abort(hidane_vt_context* context) {
  return context->Call([&]() -> Status {
    if (!context->open) return Fail(Code::kInvalidArgument, "no plan is open");
    return EndPlan(*context, false);
  });
}

int32_t hidane_vt_blob_check(const void* blob, size_t size) {
  const std::span bytes(static_cast<const std::byte*>(blob), size);
  hidane_vt_blob_header header;
  if (blob == nullptr || size < sizeof header) return HIDANE_VT_INVALID;
  std::memcpy(&header, blob, sizeof header);
  const bool whole = header.magic == kMagic && header.abi == HIDANE_VT_ABI &&
                     header.bytes == size && header.digest == BlobDigest(bytes);
  return whole ? HIDANE_VT_OK : HIDANE_VT_INVALID;
}
