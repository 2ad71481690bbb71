#include "sim/retrying_clients.h"

#include <algorithm>
#include <utility>

namespace hidane::sim {

RetryingClients::RetryingClients(std::unique_ptr<Workload> clients, const RetryOptions& options)
    : clients_(std::move(clients)), options_(options), rng_(options.seed) {}

std::optional<Request> RetryingClients::Impatient(std::optional<Request> request) {
  if (!request) return request;
  request->patience = options_.patience;
  ++SecondOf(request->arrival).requests;
  return request;
}

RetryingClients::Asked& RetryingClients::SecondOf(TimePoint at) {
  const auto second = static_cast<size_t>(at / std::chrono::seconds(1));
  if (second >= seconds_.size()) seconds_.resize(second + 1);
  return seconds_[second];
}

RetryingClients::Asked RetryingClients::AskedIn(size_t from, size_t to) const {
  Asked sum;
  for (size_t i = from; i < std::min(to, seconds_.size()); ++i) {
    sum.requests += seconds_[i].requests;
    sum.answered += seconds_[i].answered;
  }
  return sum;
}

std::optional<Request> RetryingClients::Next() {
  return Impatient(clients_->Next());
}

std::optional<Request> RetryingClients::After(const Finished& done, TimePoint now) {
  if (done.ok) ++SecondOf(done.request.arrival - done.request.waited).answered;
  if (done.ok || done.request.attempt >= options_.retries) {
    return Impatient(clients_->After(done, now));
  }
  Request again = done.request;
  const Duration longest = options_.delay * (int64_t{1} << std::min(again.attempt, 30u));
  const double share = 1 - options_.jitter * rng_.Unit();
  Duration delay = FromSeconds(Seconds(std::min(longest, options_.delay_max)) * share);
  if (done.retry_after > Duration{}) delay = done.retry_after;
  again.attempt += 1;
  again.arrival = now + delay;
  again.waited += again.arrival - done.request.arrival;
  return again;
}

}  // namespace hidane::sim
