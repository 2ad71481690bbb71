#include "engine/fork.h"

#include <vector>

#include "base/rng.h"

namespace hidane::engine {
namespace {

std::vector<uint32_t> OpenBlocks(const sched::SeqState& state, const PolicySequence* policy,
                                 uint32_t block_size) {
  if (policy != nullptr) return policy->kv().OpenBlocks();
  if (state.active() % block_size == 0) return {};
  return {state.active() / block_size};
}

void CopyBlocks(model::Model& model, std::span<const sched::BlockCopy> copies) {
  const uint32_t size = model.kv_layout().block_size;
  std::vector<model::RowMove> moves;
  for (const sched::BlockCopy& copy : copies) {
    for (uint32_t i = 0; i < size; ++i) {
      moves.push_back({0, copy.from.value() * size + i, copy.to.value() * size + i});
    }
  }
  model.MoveRows(model::KvUnit::kSequence, moves);
}

}  // namespace

void Fork(model::Model& model, sched::Scheduler& scheduler, Evictor& evictor, SeqId parent,
          std::span<const SeqId> forks) {
  evictor.Join();  // an eviction under way becomes all the forks' own
  const std::vector<uint32_t> open =
      OpenBlocks(scheduler.state(parent), evictor.Find(parent), model.kv_layout().block_size);
  for (const SeqId fork : forks) {
    if (const auto copies = scheduler.Fork(parent, fork, open)) CopyBlocks(model, *copies);
  }
  evictor.Fork(parent, forks);
}

uint64_t ChoiceSeed(uint64_t seed, uint32_t choice) {
  return choice == 0 ? seed : Mix64(Mix64(seed) + choice);
}

}  // namespace hidane::engine
