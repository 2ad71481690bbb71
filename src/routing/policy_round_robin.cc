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
                std::vector<Candidate>& considered) override {
    for (size_t i = 0; i < workers.size(); ++i) {
      WorkerState* const w = workers[next_++ % workers.size()];
      if (query.MayTake(*w)) return Chosen(query, w, params_, considered);
    }
    return {};
  }

 private:
  Params params_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeRoundRobinPolicy(const Params& params) {
  return std::make_unique<RoundRobinPolicy>(params);
}

}  // namespace hidane::routing
