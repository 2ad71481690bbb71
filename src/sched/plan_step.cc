#include "sched/plan_step.h"

#include <algorithm>

namespace hidane::sched {
namespace {

class Planner {
 public:
  explicit Planner(const StepBudget& budget)
      : tokens_(budget.tokens_max), seqs_max_(budget.seqs_max), blocks_(budget.blocks_free) {}

  // Gives each running sequence the block it grows into, the oldest first, and takes blocks from
  // the youngest where none is left. Returns those that still run.
  std::span<const RunningSeq> Grow(std::span<const RunningSeq> running) {
    size_t kept = running.size();
    for (size_t i = 0; i < kept; ++i) {
      plan_.lacks_blocks |= running[i].blocks_wanted > blocks_;
      while (running[i].blocks_wanted > blocks_ && kept > std::max<size_t>(i, 1)) {
        const RunningSeq& youngest = running[--kept];
        plan_.preempt.push_back(youngest.id);
        blocks_ += youngest.blocks_given;
      }
      // The oldest alone may seem not to fit, when those preempted shared blocks; it does.
      if (i < kept) blocks_ -= std::min(blocks_, running[i].blocks_wanted);
    }
    return running.first(kept);
  }

  void Run(SeqId id, uint32_t tokens_left) {
    const uint32_t n = std::min(tokens_left, tokens_);
    if (n == 0) return;
    tokens_ -= n;
    plan_.run.push_back({id, n});
  }

  void Admit(const NextWaiting& next_waiting, std::span<const RunningSeq> kept) {
    std::vector<const Sha256Digest*> in_flight;
    for (const RunningSeq& seq : kept) {
      if (seq.computes != nullptr) in_flight.push_back(seq.computes);
    }
    auto running = static_cast<uint32_t>(kept.size());
    auto headroom = static_cast<uint32_t>(std::ranges::count_if(kept, &RunningSeq::grows));
    while (running < seqs_max_ && tokens_ > 0) {
      const std::optional<WaitingSeq> seq = next_waiting();
      if (!seq) return;
      const auto same = [&](const Sha256Digest* d) { return *d == *seq->computes; };
      if (seq->waits_for_it && std::any_of(in_flight.begin(), in_flight.end(), same)) continue;
      plan_.lacks_blocks = seq->blocks_wanted + headroom > blocks_;
      if (plan_.lacks_blocks) return;
      blocks_ -= seq->blocks_wanted;
      if (seq->computes != nullptr) in_flight.push_back(seq->computes);
      plan_.admit.push_back(seq->id);
      Run(seq->id, seq->tokens_left);
      ++running;
      ++headroom;
    }
  }

  StepPlan Take() { return std::move(plan_); }

 private:
  uint32_t tokens_, seqs_max_, blocks_;
  StepPlan plan_;
};

}  // namespace

StepPlan PlanStep(std::span<const RunningSeq> running, const NextWaiting& next_waiting,
                  const StepBudget& budget) {
  Planner planner(budget);
  const auto kept = planner.Grow(running);
  for (const RunningSeq& seq : kept) {
    if (seq.tokens_left == 1) planner.Run(seq.id, 1);
  }
  for (const RunningSeq& seq : kept) {
    if (seq.tokens_left > 1) planner.Run(seq.id, seq.tokens_left);
  }
  // After a preemption memory is short: whoever came in now would be the next one out.
  if (kept.size() == running.size()) planner.Admit(next_waiting, kept);
  return planner.Take();
}

}  // namespace hidane::sched
