#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include "sched/scheduler_world.h"

namespace hidane::sched {
namespace {

// Prompts over two tokens and two salts, so that prefixes meet often.
std::vector<TokenId> AnyPrompt(Rng& rng) {
  std::vector<TokenId> prompt(1 + rng.Below(24), static_cast<TokenId>(rng.Below(2)));
  for (size_t i = rng.Below(24); i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>(rng.Below(2));
  }
  return prompt;
}

void Play(World& world, const std::vector<uint32_t>& ops, bool evictable = false) {
  for (const uint32_t op : ops) {
    Rng rng(op);
    switch (op % 8) {
      case 0:
      case 1: {
        auto prompt = AnyPrompt(rng);
        const auto generate = static_cast<uint32_t>(rng.Below(24));
        if (evictable && rng.Below(2) == 0) {
          const auto hit_max = static_cast<uint32_t>(rng.Below(2) == 0 ? 1000 : rng.Below(12));
          world.AddEvictable(std::move(prompt), generate, hit_max);
          break;
        }
        world.Add(std::move(prompt), generate, rng.Below(4) == 0 ? "salt" : "");
        break;
      }
      case 2:
        if (op % 3 == 0) world.Remove(op / 8);
        break;
      default:
        world.Step();
    }
  }
}

std::vector<uint32_t> AnyOps() {
  return *rc::gen::resize(300, rc::gen::container<std::vector<uint32_t>>(
                                   rc::gen::resize(100, rc::gen::inRange(0u, 1u << 20))));
}

RC_GTEST_PROP(SchedulerProps, EveryContextIsRightAndEveryBlockComesBack, ()) {
  World world(kWorldOptions);
  Play(world, AnyOps());
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kWorldOptions.kv_blocks);
  RC_ASSERT(world.s.running() + world.s.waiting() == 0u);
}

RC_GTEST_PROP(SchedulerProps, TheSameHoldsWithoutNames, ()) {
  World world(kWorldOptions, false);
  Play(world, AnyOps());
  RC_ASSERT(world.s.cache().blocks_published() == 0u);
  world.Drain();
}

RC_GTEST_PROP(SchedulerProps, AResetAtAnyTimeLosesHitsOnly, ()) {
  World world(kWorldOptions);
  Play(world, AnyOps());
  world.Reset();
  RC_ASSERT(world.s.cache().blocks_published() == 0u);
  Play(world, AnyOps());
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kWorldOptions.kv_blocks);
}

RC_GTEST_PROP(SchedulerProps, EvictionHarmsNobodyAndLosesNoBlock, ()) {
  World world(kWorldOptions);
  Play(world, AnyOps(), true);
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kWorldOptions.kv_blocks);
}

RC_GTEST_PROP(SchedulerProps, AResetAmidEvictionsLosesHitsOnly, ()) {
  World world(kWorldOptions);
  Play(world, AnyOps(), true);
  world.Reset();
  Play(world, AnyOps(), true);
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kWorldOptions.kv_blocks);
}

RC_GTEST_PROP(SchedulerProps, AForkGoesOnFromItsParentsStateAndHarmsNobody, (bool named)) {
  World world(kWorldOptions, named);
  world.LetFork();
  Play(world, AnyOps(), true);
  world.Drain();
  RC_ASSERT(world.s.cache().blocks_free() == kWorldOptions.kv_blocks);
}

}  // namespace
}  // namespace hidane::sched
