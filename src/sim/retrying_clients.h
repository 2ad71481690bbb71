#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "sim/workload.h"

namespace hidane::sim {

/// How a client behaves whose request fails or stays silent.
struct RetryOptions {
  Duration patience = std::chrono::seconds(5);  ///< without a first byte; 0: waits for ever
  uint32_t retries = 2;
  Duration delay = std::chrono::milliseconds(500);  ///< before the first retry, then doubling
  Duration delay_max = std::chrono::seconds(8);
  double jitter = 0.25;  ///< a delay is drawn from [1 - jitter, 1] of itself
  uint64_t seed = 1;
};

/// The clients of another workload, made impatient. The defaults are the OpenAI SDKs' retries (2,
/// min(0.5 s x 2^k, 8 s) x U(0.75..1); read in openai-python 3.3.1 and openai-node 7.5.0) under a
/// time limit of 5 s that an impatient user sets; their own is 600 s.
///
/// A refusal's promise is kept instead of the delay, as SDKs do with a Retry-After of up to a
/// minute. A retry is the same request with the next attempt number; what it waited before counts
/// in its TTFT. The workload below hears of the last attempt only.
class RetryingClients final : public Workload {
 public:
  RetryingClients(std::unique_ptr<Workload> clients, const RetryOptions& options);
  std::string_view name() const override { return clients_->name(); }
  std::optional<Request> Next() override;
  std::optional<Request> After(const Finished& done, TimePoint now) override;
  /// What was asked in a second, each request once, and how much of it was answered at whichever
  /// try.
  struct Asked {
    uint64_t requests = 0;
    uint64_t answered = 0;
    double answered_share() const { return static_cast<double>(answered) / requests; }
  };
  /// In the seconds [from, to).
  Asked AskedIn(size_t from, size_t to) const;

 private:
  std::optional<Request> Impatient(std::optional<Request> request);
  Asked& SecondOf(TimePoint at);

  std::unique_ptr<Workload> clients_;
  RetryOptions options_;
  Rng rng_;
  std::vector<Asked> seconds_;
};

}  // namespace hidane::sim
