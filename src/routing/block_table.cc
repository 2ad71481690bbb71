#include "routing/block_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hidane::routing {

void BlockTable::Set(uint64_t block, uint32_t value) {
  if (4 * (size_ + 1) > 3 * slots_.size()) Grow();
  Slot& slot = slots_[Place(block)];
  size_ += slot.value == kNone;
  slot = {block, value};
}

// Each entry behind the hole moves into it unless its way from home does not lead across it.
void BlockTable::Erase(uint64_t block) {
  if (Find(block) == kNone) return;
  const size_t mask = slots_.size() - 1;
  size_t hole = Place(block);
  for (size_t at = Next(hole); slots_[at].value != kNone; at = Next(at)) {
    const size_t from_home = (at - Home(slots_[at].block)) & mask;
    if (from_home < ((at - hole) & mask)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = Slot{};
  --size_;
}

void BlockTable::Grow() {
  const std::vector<Slot> old =
      std::exchange(slots_, std::vector<Slot>(std::max<size_t>(16, 2 * slots_.size())));
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size()));
  for (const Slot& slot : old) {
    if (slot.value != kNone) slots_[Place(slot.block)] = slot;
  }
}

}  // namespace hidane::routing
