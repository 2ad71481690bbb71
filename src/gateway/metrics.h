#pragma once
#include <array>

#include "base/result.h"
#include "obs/metrics.h"
#include "routing/decision.h"

namespace hidane::gateway {

/// The gateway's own cells. Label sets are closed: decisions, error codes; never a tenant, a
/// model or an address.
struct Metrics {
  explicit Metrics(obs::Registry& registry);

  obs::Counter& Decisions(routing::Rule rule) { return *decisions_[static_cast<size_t>(rule)]; }
  obs::Counter& Refused(Code code) { return *refused_[static_cast<size_t>(code)]; }

  obs::Counter &requests, &answered, &client_gone, &failovers, &cut_streams;
  obs::Counter &prompt_tokens, &cached_tokens, &completion_tokens;
  obs::Histogram &ttft, &queue_wait, &regret;

 private:
  std::array<obs::Counter*, static_cast<size_t>(routing::Rule::kPolicy) + 1> decisions_;
  std::array<obs::Counter*, 10> refused_;
};

}  // namespace hidane::gateway
