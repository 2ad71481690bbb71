#pragma once
#include <cstdint>
#include <span>

#include "base/result.h"
#include "vtoken/relocation_planner.h"
#include "vtoken/unit.h"

namespace hidane::vtoken {

/// Moves of sequences whose units are the same kind of thing.
struct MoveGroup {
  Scope scope;
  std::span<const SlotMove> moves;  ///< physical slots: block id * block_size + offset
};

/// Names a batch of moves until they are done.
struct Fence {
  uint64_t id = 0;
};

/// Copies K/V rows of a unit from one physical slot to another: of every layer and head the unit
/// stands for. Within one batch no slot is both source and destination, nor twice a destination,
/// so the rows may be copied in any order and in parallel. The CPU's lives in the model room, the
/// CUDA one beside it.
struct MoveExecutor {
  /// Starts a batch. The groups' memory stays as it is until Wait has returned.
  virtual Result<Fence> Start(std::span<const MoveGroup> groups) = 0;
  /// Returns when every move before `fence` is done, as the next attention sees it. An error means
  /// that nothing is known of the destinations; the sources are untouched.
  virtual Status Wait(Fence fence) = 0;

 protected:
  ~MoveExecutor() = default;
};

}  // namespace hidane::vtoken
