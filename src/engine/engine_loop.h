#pragma once
#include <map>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "engine/evictor.h"
#include "engine/mailbox.h"
#include "engine/probe.h"
#include "engine/sampler.h"
#include "model/model.h"
#include "sched/block_digest.h"
#include "sched/scheduler.h"

namespace hidane::engine {

/// The engine thread's own state and its loop: commands in, one step, events out, again.
/// Everything but the mailbox and the probe is touched by this thread alone.
class EngineLoop {
 public:
  EngineLoop(std::unique_ptr<model::Model> model, const text::TextModel& text,
             const EngineOptions& options, Mailbox& mailbox, Probe& probe);
  /// Runs until the mailbox is stopped, then ends every live request with kCancelled.
  void Run();

 private:
  /// One choice of a request. Its id is the request's and its number added up.
  struct Live {
    std::shared_ptr<const Request> request;  // its prompt has moved to:
    std::vector<TokenId> tokens;             // the prompt, then what was generated
    std::shared_ptr<const Sink> sink;
    uint64_t seed;  // the request's
    Rng rng;
    TimePoint last;         // submitted, or got its last token
    uint32_t unforked = 0;  // choices that begin when this one's prompt is computed
    uint32_t choice = 0;
    uint32_t completion_tokens = 0;
  };

  void Do(SubmitCommand& command);
  void Do(CancelCommand& command);
  void Do(ResetCommand& command);
  void Do(ReadKvCommand& command);
  sched::StepTally Step();
  void CountAdmissions(const sched::StepPlan& plan);
  void Compute(const sched::StepPlan& plan);
  uint32_t BeginChoices(SeqId id);
  void Deliver(SeqId id, std::span<const float> logits);
  void Append(SeqId id, Live& live, TokenId token);
  Finish FinishOf(const Live& live, TokenId token) const;
  void End(SeqId id, Event event);
  void CancelAll();
  Event EventOf(SeqId id, const Live& live) const;
  void Publish();

  std::unique_ptr<model::Model> model_;
  const text::TextModel& text_;
  const EngineOptions options_;
  Mailbox& mailbox_;
  Probe& probe_;
  sched::Scheduler scheduler_;
  Evictor evictor_;
  sched::BlockDigester digester_;
  Sampler sampler_;
  std::map<SeqId, Live> live_;

  // One step's batch, kept for its memory.
  std::vector<TokenId> tokens_;
  std::vector<model::SeqSlice> slices_;
  std::vector<SeqId> rows_;  // who gets which row of logits_
  std::vector<float> logits_;
};

}  // namespace hidane::engine
