#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "engine/evictor.h"
#include "model/model.h"
#include "sched/scheduler.h"

namespace hidane::engine {

/// Several answers to one prompt: `forks` begin in the state of `parent`, which shares its K/V with
/// them; the blocks that the next tokens are written into are copied. A fork that finds no room
/// waits as if it had been preempted. Engine thread only.
/// REQUIRES: as Scheduler::Fork, for each of `forks`.
void Fork(model::Model& model, sched::Scheduler& scheduler, Evictor& evictor, SeqId parent,
          std::span<const SeqId> forks);

/// The seed of the answer `choice` to a request with `seed`: its own for the first, another for
/// each other one.
uint64_t ChoiceSeed(uint64_t seed, uint32_t choice);

}  // namespace hidane::engine
