#pragma once
#include <cstdint>

#include "engine/kv_map.h"
#include "engine/policy_sequence.h"
#include "sched/scheduler.h"

namespace hidane::engine {

/// `policy`: null for a sequence without one. Between two steps, with no eviction under way.
KvSequence DescribeKv(const sched::SeqState& state, const PolicySequence* policy,
                      uint32_t block_size);

}  // namespace hidane::engine
