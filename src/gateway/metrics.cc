#include "gateway/metrics.h"

#include "base/error_map.h"

namespace hidane::gateway {

Metrics::Metrics(obs::Registry& r)
    : requests(r.counter("hidane_requests_total", "Requests to /v1/* that were read whole.")),
      answered(r.counter("hidane_answers_total", "Answers of engines relayed to their end.")),
      client_gone(r.counter("hidane_client_gone_total", "Clients that left before their answer.")),
      failovers(r.counter("hidane_failovers_total", "Requests sent again to another worker.")),
      cut_streams(r.counter("hidane_upstream_cut_total",
                            "Answers that an engine broke off after their first byte.")),
      prompt_tokens(r.counter("hidane_prompt_tokens_total", "Prompt tokens, as engines counted.")),
      cached_tokens(
          r.counter("hidane_cached_tokens_total", "Prompt tokens that engines had cached.")),
      completion_tokens(
          r.counter("hidane_completion_tokens_total", "Tokens generated, as engines counted.")),
      ttft(r.histogram("hidane_ttft_seconds",
                       "From the whole request read to the first byte of the answer.",
                       obs::LatencyBounds())),
      queue_wait(r.histogram("hidane_queue_wait_seconds",
                             "Wait for another request's prefill of the same prefix.",
                             obs::LatencyBounds())),
      regret(r.histogram("hidane_routing_regret_tokens",
                         "Cached tokens that were expected and did not come.",
                         obs::TokenBounds())) {
  for (size_t i = 0; i < decisions_.size(); ++i)
    decisions_[i] = &r.counter("hidane_routing_decisions_total", "Routed requests by reason.",
                               {{"decision", std::string(Name(static_cast<routing::Rule>(i)))}});
  for (size_t i = 0; i < refused_.size(); ++i)
    refused_[i] = &r.counter("hidane_shed_total", "Requests answered with an error of Hidane's.",
                             {{"reason", std::string(ToWire(static_cast<Code>(i)).code)}});
}

}  // namespace hidane::gateway
