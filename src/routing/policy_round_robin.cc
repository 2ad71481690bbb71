#include <algorithm>

#include "routing/policies.h"

namespace hidane::routing {
namespace {

/// In turn. Models nginx's default upstream method and a Kubernetes Service.
/// Source: https://nginx.org/en/docs/http/ngx_http_upstream_module.html
class RoundRobinPolicy final : public Policy {
 public:
  explicit RoundRobinPolicy(const Params& params) : params_(params) {}
  std::string_view name() const override { return "round_robin"; }

  Choice Choose(const Query& query, WorkerSpan workers,
                std::vector<Candidate>& considered) const override {
    const size_t next = std::ranges::upper_bound(workers, last_, {}, IdOf) - workers.begin();
    for (size_t i = 0; i < workers.size(); ++i) {
      WorkerState* const w = workers[(next + i) % workers.size()];
      if (query.MayTake(*w)) return Chosen(query, w, params_, considered);
    }
    return {};
  }
  uint32_t Commit(const Query&, const Choice& choice) override {
    last_ = choice.worker->spec.id;
    return 0;
  }

 private:
  static WorkerId IdOf(const WorkerState* worker) { return worker->spec.id; }

  Params params_;
  WorkerId last_{UINT32_MAX};  // so that the first turn is the first worker's
};

}  // namespace

std::unique_ptr<Policy> MakeRoundRobinPolicy(const Params& params) {
  return std::make_unique<RoundRobinPolicy>(params);
}

}  // namespace hidane::routing
