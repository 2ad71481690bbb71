#include "engine/kv_describe.h"

#include <algorithm>
#include <vector>

namespace hidane::engine {
namespace {

/// Live tokens in each stretch of the stream, all units together, and in how many some live.
void DescribeStream(const vtoken::SequenceKv& kv, uint32_t block_size, KvSequence& out) {
  const uint32_t units = kv.shape().units;
  const uint32_t stretches = (kv.logical_length() + block_size - 1) / block_size;
  std::vector<uint32_t> live(stretches, 0);
  for (uint32_t unit = 0; unit < units; ++unit) {
    for (uint32_t slot = 0; slot <= kv.active_length(); ++slot) {
      if (kv.live(unit, slot)) ++live[kv.token(unit, slot) / block_size];
    }
  }
  out.blocks_unmoved = static_cast<uint32_t>(
      std::count_if(live.begin(), live.end(), [](uint32_t n) { return n > 0; }));
  for (uint32_t i = 0; i < stretches; ++i) {
    const uint32_t tokens = std::min(block_size, kv.logical_length() - i * block_size);
    out.live.push_back(static_cast<uint8_t>(100ull * live[i] / (uint64_t{tokens} * units)));
  }
}

}  // namespace

KvSequence DescribeKv(const sched::SeqState& state, const PolicySequence* policy,
                      uint32_t block_size) {
  KvSequence out;
  out.id = state.id;
  out.running = state.running;
  out.prompt_tokens = state.prompt_tokens;
  out.tokens = state.computed;
  out.slots = state.active();
  out.blocks = static_cast<uint32_t>(state.table.size());
  out.blocks_unmoved = out.blocks;
  if (policy == nullptr) {
    out.live.assign((state.computed + block_size - 1) / block_size, 100);
    return out;
  }
  out.policy = policy->config().name;
  DescribeStream(policy->kv(), block_size, out);
  return out;
}

}  // namespace hidane::engine
