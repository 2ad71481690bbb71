// Snapshots and plans come from other processes: any bytes are refused or mean a whole sequence.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "hidane_vtoken.h"
#include "vtoken/block_pool.h"
#include "vtoken/block_pool_adapter.h"
#include "vtoken/digest.h"
#include "vtoken/sequence_kv.h"

namespace {

using namespace hidane;
using namespace hidane::vtoken;

class Pool final : public BlockPoolAdapter {
 public:
  Result<uint32_t> RefCount(BlockId block) const override { return pool_.RefCount(block); }
  Result<bool> Pinned(BlockId block) const override { return pool_.Pinned(block); }
  Result<BlockId> Allocate() override { return pool_.Allocate(); }
  Status Retain(BlockId block) override { return pool_.Ref(block); }
  Status Release(BlockId block) override { return pool_.Release(block, BlockPool::Reuse::kOldest); }
  Status Unpublish(BlockId) override { return {}; }
  bool all_free() const { return pool_.free() == pool_.size(); }

 private:
  BlockPool pool_{16};
};

// What could be decoded is a sequence: it comes back, reads whole and goes again.
void Restore(const Snapshot& snapshot) {
  Pool pool;
  auto seq = SequenceKv::Import(
      snapshot, {.block_size = 4, .scope = snapshot.scope, .units = snapshot.units}, pool);
  if (seq) {
    for (uint32_t unit = 0; unit < snapshot.units; ++unit) {
      uint32_t live = 0;
      for (uint32_t slot = 0; slot <= seq->active_length(); ++slot) {
        if (!seq->live(unit, slot)) continue;
        if (seq->token(unit, slot) >= snapshot.logical_length) std::abort();
        ++live;
      }
      if (live != snapshot.live) std::abort();
    }
    if (!seq->Release(pool)) std::abort();
  }
  if (!pool.all_free()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hidane_vt_blob_check(data, size);
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(data[i]);
  (void)Decode(bytes).has_value();
  // Once more with a right checksum, which no mutation would find: header of 72 bytes, the checksum
  // last.
  if (size < 72) return 0;
  std::fill(bytes.begin() + 64, bytes.begin() + 72, std::byte{0});
  const auto all = std::span(std::as_const(bytes));
  const uint64_t checksum = Digest(all.subspan(72), Digest(all.first(72)));
  for (size_t i = 0; i < 8; ++i) bytes[64 + i] = static_cast<std::byte>(checksum >> (8 * i));
  const auto snapshot = Decode(bytes);
  if (snapshot && snapshot->units <= 64) Restore(*snapshot);
  return 0;
}
