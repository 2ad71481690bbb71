#include "sim/key_moves.h"

namespace hidane::sim {

void KeyMoves::FillRow(Row& row) const {
  if (known_ == 0) return;
  const auto known = static_cast<double>(known_);
  row.keys_moved = static_cast<double>(moved_) / known;
  row.keys_lost = static_cast<double>(lost_) / known;
}

}  // namespace hidane::sim
