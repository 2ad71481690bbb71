#pragma once
#include "sim/trace.h"

namespace hidane::sim {

/// Sets k1_end and k2_end of every turn of a trace that says nothing about the parts of its
/// prompts.
///
/// A static prefix is what many conversations share and then leave in different ways. So K1 ends
/// with the deepest block of a prompt after which the trace goes on in at least kBranches ways,
/// and is empty where there is none; K2 is one block more: where conversations part. In Mooncake's
/// conversation trace all requests share block 0 (K1) and 7,373 blocks follow it; in its synthetic
/// one prompts part at block 0, so K1 is empty.
///
/// It looks at the whole trace, which a gateway cannot; a gateway reads the parts from the request.
void MarkByBranching(Trace& trace);

inline constexpr uint32_t kBranches = 16;

}  // namespace hidane::sim
