#include "sim/tenant_loop.h"

#include <algorithm>
#include <utility>

#include "sim/prompt_chain.h"
#include "sim/servegen.h"

namespace hidane::sim {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

uint32_t DrawBetween(Rng& rng, uint32_t min, uint32_t max) {
  return min + static_cast<uint32_t>(rng.Below(max - min + 1));
}

}  // namespace

TenantLoop::TenantLoop(const TenantLoopOptions& options)
    : options_(options),
      popularity_(options.servegen ? ServeGenWeights(ServeGenClass::kLarge, options.tenants)
                                   : ZipfWeights(options.tenants, options.zipf_s)),
      loop_rng_(Mix64(options.seed)),
      burst_rng_(Mix64(options.seed) + 1),
      churn_rng_(Mix64(options.seed) + 2),
      arrival_rng_(Mix64(options.seed) + 3),
      next_tenant_(options.tenants) {
  for (uint32_t t = 0; t < options.tenants; ++t) tenants_.push_back(t);
  unseen_ = tenants_;
  for (size_t i = unseen_.size(); i > 1; --i) {
    std::swap(unseen_[i - 1], unseen_[loop_rng_.Below(i)]);
  }
}

// The clients of the loop begin together; the burst comes when its time does.
std::optional<Request> TenantLoop::Next() {
  if (open() && sent_ < options_.requests) return Loop(NextArrival());
  if (sent_ < std::min<uint64_t>(options_.concurrency, options_.requests)) return Loop(TimePoint{});
  if (burst_ == options_.burst) return std::nullopt;
  ++burst_;
  return Draw(DrawTenant(burst_rng_), burst_rng_, options_.burst_at);
}

std::optional<Request> TenantLoop::After(const Finished& done, TimePoint now) {
  const Request& last = done.request;
  if (options_.retries && !done.ok && last.attempt + 1 < kAttemptsMax) {
    constexpr double kFirstDelaySeconds = 0.5;
    Request again = last;
    ++again.attempt;
    const double delay_s = last.attempt == 0 ? 0 : kFirstDelaySeconds * (1u << (last.attempt - 1));
    again.arrival = now + FromSeconds(delay_s);
    again.waited += again.arrival - last.arrival;
    return again;
  }
  if (open()) return std::nullopt;
  return Loop(now);
}

// Poisson: an exponential amount of the rate's integral passes between two arrivals.
TimePoint TenantLoop::NextArrival() {
  double left = DrawWeibull(arrival_rng_, 1, 1);
  for (const TimePoint edge : {options_.surge_at, options_.surge_until}) {
    if (arrived_ >= edge) continue;
    const double until_edge = RateAt(arrived_) * Seconds(edge - arrived_);
    if (left < until_edge) break;
    left -= until_edge;
    arrived_ = edge;
  }
  return arrived_ += FromSeconds(left / RateAt(arrived_));
}

double TenantLoop::RateAt(TimePoint at) const {
  const double slower = sent_ < options_.uncounted / 2 ? 0.5 : 1;
  const bool surges = at >= options_.surge_at && at < options_.surge_until;
  return options_.rate_per_s * slower * (surges ? options_.surge : 1);
}

std::optional<Request> TenantLoop::Loop(TimePoint now) {
  if (sent_ == options_.requests || now > options_.until) return std::nullopt;
  Churn(now);
  const bool warms = sent_ < options_.uncounted && !unseen_.empty();
  const uint32_t tenant = warms ? unseen_.back() : DrawTenant(loop_rng_);
  if (warms) unseen_.pop_back();
  Request request = Draw(tenant, loop_rng_, now);
  request.counted = sent_++ >= options_.uncounted && now >= options_.counted_from;
  return request;
}

uint32_t TenantLoop::DrawTenant(Rng& rng) {
  for (;;) {
    const uint32_t tenant = tenants_[popularity_.Draw(rng)];
    if (tenant != kNobody) return tenant;
  }
}

Request TenantLoop::Draw(uint32_t tenant, Rng& rng, TimePoint at) {
  Request request;
  request.arrival = at;
  request.tenant = tenant;
  request.prompt = StaticPrompt(tenant);
  AppendTokens(Mix64(options_.seed ^ Mix64(++own_)),
               DrawBetween(rng, options_.own_tokens_min, options_.own_tokens_max), request.prompt);
  request.prompt.k2_end = static_cast<uint32_t>(request.prompt.size());
  request.prompt.message_ends.push_back(request.prompt.k2_end);
  request.output_tokens = DrawBetween(rng, options_.output_tokens_min, options_.output_tokens_max);
  return request;
}

const prompt::Identity& TenantLoop::StaticPrompt(uint32_t tenant) {
  auto [at, fresh] = prompts_.try_emplace(tenant);
  prompt::Identity& prompt = at->second;
  if (!fresh) return prompt;
  const uint64_t content = Mix64(options_.seed ^ Mix64(tenant + (uint64_t{1} << 32)));
  const double spread = (2 * Rng(content).Unit() - 1) * options_.static_spread;
  const auto tokens = static_cast<uint32_t>(options_.static_tokens * (1 + spread) + 0.5);
  prompt.root = 1;
  AppendTokens(content, tokens, prompt);
  prompt.k1_end = static_cast<uint32_t>(prompt.size());
  prompt.tools_end = prompt.k1_end;
  return prompt;
}

// In turn a tenant leaves and a new one takes its place.
void TenantLoop::Churn(TimePoint now) {
  if (options_.churn_every == Duration{} || tenants_.size() < 2) return;
  const auto due = static_cast<uint64_t>(now / options_.churn_every);
  for (; churned_ < due; ++churned_) {
    if (churned_ % 2 == 0) {
      vacant_ = static_cast<uint32_t>(churn_rng_.Below(tenants_.size()));
      tenants_[vacant_] = kNobody;
    } else {
      tenants_[vacant_] = next_tenant_++;
    }
  }
}

}  // namespace hidane::sim
