#include "gateway/proxy.h"

#include <fmt/format.h>

#include "gateway/api.h"
#include "gateway/call.h"
#include "gateway/respond.h"

namespace hidane::gateway {
namespace {

net::ClientOptions PoolOptions(const Config& config) {
  net::ClientOptions options;
  options.idle_max = std::chrono::milliseconds(config.timeouts_upstream_idle_ms());
  return options;
}

bool IsRelayed(std::string_view path) {
  return path.substr(0, 4) == "/v1/" || path == "/tokenize" || path == "/detokenize";
}

/// Counts a request as long as a handler has it, so that a drain knows what it waits for.
struct InFlight {
  explicit InFlight(std::atomic<int64_t>& n) : count(n) { ++count; }
  ~InFlight() { --count; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  std::atomic<int64_t>& count;
};

}  // namespace

Proxy::Proxy(Context& context, net::Loop& loop, uint64_t seed)
    : context_(context),
      loop_(loop),
      pool_(loop, PoolOptions(*context.config)),
      read_options_(ReadOptionsOf(*context.config)),
      rng_(seed),
      releaser_([this](routing::Ticket ticket) {
        loop_.Post([this, ticket] {
          if (const auto it = waiting_.find(ticket); it != waiting_.end()) it->second->Notify();
        });
      }) {}

std::string Proxy::NewRequestId() {
  return fmt::format("{:016x}{:016x}", rng_.Next(), rng_.Next());
}

net::Task<> Proxy::Handle(net::Exchange& exchange) {
  const InFlight in_flight(context_.in_flight);
  const std::string_view path = exchange.head().path();
  const std::string& method = exchange.head().method;
  const bool reads = method == "GET" || method == "HEAD";
  if (reads && path == "/health") {
    (void)co_await RespondJson(exchange, 200, R"({"status":"ok"})");
  } else if (reads && path == "/ready") {
    const bool ready = !context_.draining && context_.fleet.AnyUp();
    (void)co_await RespondJson(exchange, ready ? 200 : 503,
                               ready ? R"({"ready":true})" : R"({"ready":false})");
  } else if (reads && path == "/v1/models") {
    (void)co_await RespondJson(exchange, 200, context_.fleet.Models());
  } else if (IsRelayed(path)) {
    Call call(*this, exchange);
    co_await call.Run();
  } else {
    Error error{Code::kNotFound, "no such route: " + std::string(path), {}};
    (void)co_await RespondError(exchange, std::move(error), {});
  }
}

}  // namespace hidane::gateway
