#include "sim/oracle.h"

#include <utility>

namespace hidane::sim {
namespace {

class Oracle final : public routing::Policy {
 public:
  explicit Oracle(std::function<const Engine&(WorkerId)> engine_of)
      : engine_of_(std::move(engine_of)) {}
  std::string_view name() const override { return "oracle"; }

  routing::Choice Choose(const routing::Query& query, routing::WorkerSpan workers,
                         std::vector<routing::Candidate>& considered) const override {
    routing::WorkerState* best = nullptr;
    double least = 0;
    for (size_t i = 0; i < workers.size(); ++i) {
      routing::WorkerState* const worker = workers[(next_ + i) % workers.size()];
      if (!query.MayTake(*worker)) continue;
      const WorkerId id = worker->spec.id;
      const Forecast f = engine_of_(id).Predict(query.prompt, query.output_tokens);
      considered.push_back({.worker = id,
                            .cached_tokens = f.cached_tokens,
                            .ttft = {.wait = f.wait,
                                     .prefill = f.prefill,
                                     .interference = f.decode,
                                     .kv_wait = f.kv_wait}});
      const double cost = considered.back().ttft.total() + f.prefill;
      if (best != nullptr && cost >= least) continue;
      best = worker;
      least = cost;
    }
    return {best, routing::Rule::kPolicy};
  }
  uint32_t Commit(const routing::Query&, const routing::Choice&) override {
    ++next_;
    return 0;
  }

 private:
  std::function<const Engine&(WorkerId)> engine_of_;
  size_t next_ = 0;  // equals go in turn
};

}  // namespace

std::unique_ptr<routing::Policy> MakeOracle(std::function<const Engine&(WorkerId)> engine_of) {
  return std::make_unique<Oracle>(std::move(engine_of));
}

}  // namespace hidane::sim
