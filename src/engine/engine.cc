#include "engine/engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "engine/engine_loop.h"
#include "engine/mailbox.h"
#include "engine/probe.h"
#include "engine/request_check.h"

namespace hidane::engine {
namespace {

EngineStats IdleStats(const model::Model& model) {
  return {.kv_blocks = model.kv_blocks(),
          .kv_blocks_free = model.kv_blocks(),
          .block_size = model.kv_layout().block_size};
}

// The half of the engine that other threads see.
class ThreadedEngine final : public Engine {
 public:
  ThreadedEngine(std::unique_ptr<model::Model> model, const text::TextModel& text,
                 const EngineOptions& options, obs::Registry& registry)
      : info_(model->info()),
        limits_{info_.vocab_size, info_.context_length,
                uint64_t{model->kv_blocks()} * model->kv_layout().block_size,
                std::min(options.max_num_seqs, options.max_num_batched_tokens), options.kv_policy},
        clock_(*options.clock),
        mailbox_(options.max_queue, IdleStats(*model)),
        probe_(registry, info_.name, IdleStats(*model)),
        loop_(std::move(model), text, options, mailbox_, probe_),
        thread_([this] { loop_.Run(); }) {}

  ~ThreadedEngine() override {
    mailbox_.Stop();
    thread_.join();
  }

  Result<SeqId> Submit(Request request, Sink sink) override {
    HIDANE_CHECK_OK(CheckRequest(request, limits_));
    return mailbox_.Submit(std::move(request), std::move(sink), clock_.Now());
  }
  void Cancel(SeqId id) override { mailbox_.Post(CancelCommand{id, std::nullopt}); }
  void CancelChoice(SeqId id, uint32_t choice) override {
    mailbox_.Post(CancelCommand{id, choice});
  }
  uint32_t MaxTokens(uint64_t prompt_tokens, const std::optional<KvPolicy>& policy) const override {
    return MaxTokensThatFit(prompt_tokens, policy ? *policy : limits_.kv_policy, limits_);
  }
  void ResetPrefixCache() override { mailbox_.Post(ResetCommand{}); }
  void ReadKv(std::function<void(KvMap)> done) override {
    mailbox_.Post(ReadKvCommand{std::move(done)});
  }
  EngineStats stats() const override { return mailbox_.stats(); }
  const model::ModelInfo& model_info() const override { return info_; }

 private:
  const model::ModelInfo info_;
  const RequestLimits limits_;
  const Clock& clock_;
  Mailbox mailbox_;
  Probe probe_;
  EngineLoop loop_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Engine> Engine::Create(std::unique_ptr<model::Model> model,
                                       const text::TextModel& text, const EngineOptions& options,
                                       obs::Registry& registry) {
  HIDANE_ASSERT(options.max_num_batched_tokens > 0 && options.max_num_seqs > 0);
  HIDANE_ASSERT(options.max_queue > 0);
  return std::make_unique<ThreadedEngine>(std::move(model), text, options, registry);
}

}  // namespace hidane::engine
