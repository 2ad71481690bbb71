#include "sim/retrying_clients.h"

#include <algorithm>
#include <utility>

namespace hidane::sim {

RetryingClients::RetryingClients(std::unique_ptr<Workload> clients, const RetryOptions& options)
    : clients_(std::move(clients)), options_(options), rng_(options.seed) {}

std::optional<Request> RetryingClients::Impatient(std::optional<Request> request) const {
  if (request) request->patience = options_.patience;
  return request;
}

std::optional<Request> RetryingClients::Next() {
  return Impatient(clients_->Next());
}

std::optional<Request> RetryingClients::After(const Finished& done, TimePoint now) {
  if (done.ok || done.request.attempt >= options_.retries) {
    return Impatient(clients_->After(done, now));
  }
  Request again = done.request;
  const Duration longest = options_.delay * (int64_t{1} << std::min(again.attempt, 30u));
  const double share = 1 - options_.jitter * rng_.Unit();
  const Duration delay = FromSeconds(Seconds(std::min(longest, options_.delay_max)) * share);
  again.attempt += 1;
  again.arrival = now + delay;
  again.waited += again.arrival - done.request.arrival;
  return again;
}

}  // namespace hidane::sim
