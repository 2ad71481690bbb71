#include "vtoken/token_table.h"

#include <utility>

#include "vtoken/relayout.h"

namespace hidane::vtoken {

void TokenTable::Apply(const RelocationPlan& plan, uint32_t unit, uint32_t block_size,
                       uint32_t slots, uint32_t next, Vector<uint32_t>& scratch) {
  for (auto slot = static_cast<uint32_t>(moved_.size()); slot < slots; ++slot) {
    moved_.push_back(slot + shift_);
  }
  Relayout(plan, unit, block_size, moved_, scratch);
  if (!plan.incoming.empty()) moved_[plan.incoming[unit]] = next++;
  shift_ = next - plan.slots;
}

void TokenTable::Assign(Vector<uint32_t> tokens, uint32_t next) {
  shift_ = next - static_cast<uint32_t>(tokens.size());
  moved_ = std::move(tokens);
}

}  // namespace hidane::vtoken
