#include "gateway/gateway.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "base/log.h"
#include "gateway/admin.h"
#include "gateway/context.h"
#include "gateway/keep_warm.h"
#include "gateway/probes.h"
#include "gateway/proxy.h"
#include "net/server.h"

namespace hidane::gateway {
namespace {

/// One thread with all that lives on it.
struct Shard {
  net::Loop loop;
  std::unique_ptr<Proxy> proxy;
  std::unique_ptr<Admin> admin;  // the first shard's only, as the next three
  std::unique_ptr<Probes> probes;
  std::unique_ptr<KeepWarm> keep_warm;
  std::unique_ptr<net::Server> admin_server;
  std::unique_ptr<net::Server> server;
  std::atomic<size_t> connections{SIZE_MAX};  // as last counted on the loop
  std::thread thread;
};

net::ServerOptions OptionsOf(const Config& config) {
  net::ServerOptions options;
  options.head.head_bytes_max = static_cast<uint32_t>(config.limits_header_bytes_max());
  options.connections_max = static_cast<uint32_t>(config.server_connections_max());
  const Duration client = std::chrono::milliseconds(config.timeouts_client_ms());
  options.head_timeout = options.body_window = options.write_stall = client;
  options.idle_timeout = std::chrono::milliseconds(config.timeouts_client_idle_ms());
  return options;
}

Result<std::vector<net::Address>> ResolveAll(const Config& config) {
  std::vector<net::Address> addresses;
  for (const auto& upstream : config.upstreams) {
    HIDANE_TRY(const auto found, net::Resolve(upstream->host, upstream->port));
    addresses.push_back(found.front());
  }
  return addresses;
}

}  // namespace

struct Gateway::Impl {
  enum class State : uint8_t { kRunning, kDraining, kStopping };

  explicit Impl(std::unique_ptr<Config> config, std::vector<net::Address> addresses)
      : context(std::move(config), std::move(addresses), SteadyClock()) {}
  ~Impl();

  Status Listen();
  void Run();
  void Enter(State next);

  // On the supervisor's thread.
  void Supervise();
  void Drain();
  void Cut();
  void PostAll(void (*fn)(Shard&));
  /// Until `done`, `until` has passed, or, if `interruptible`, the state is kStopping.
  template <class Done>
  void WaitFor(Done done, std::chrono::steady_clock::time_point until, bool interruptible);

  Context context;
  std::vector<std::unique_ptr<Shard>> shards;
  uint16_t data_port = 0, admin_port = 0;
  std::mutex mutex;
  std::condition_variable changed;
  State state = State::kRunning;
  std::thread supervisor;
};

Status Gateway::Impl::Listen() {
  const Config& config = *context.config;
  HIDANE_TRY(net::Address data, net::ParseListen(config.server_listen()));
  HIDANE_CHECK_OK(net::CheckPortFree(data));
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t n =
      config.server_threads() > 0 ? static_cast<size_t>(config.server_threads()) : cores;
  std::random_device entropy;
  for (size_t i = 0; i < n; ++i) {
    auto shard = std::make_unique<Shard>();
    const uint64_t seed = (uint64_t{entropy()} << 32) | entropy();
    shard->proxy = std::make_unique<Proxy>(context, shard->loop, seed);
    Proxy* proxy = shard->proxy.get();
    HIDANE_TRY(shard->server,
               net::Server::Listen(
                   shard->loop, data, [proxy](net::Exchange& x) { return proxy->Handle(x); },
                   OptionsOf(config)));
    // Port 0: the first listener picks, the others join it.
    HIDANE_TRY(data, net::ParseListen(data.Host() + ":" + std::to_string(shard->server->port())));
    data_port = shard->server->port();
    shards.push_back(std::move(shard));
  }
  Shard& first = *shards.front();
  first.probes = std::make_unique<Probes>(context, first.loop);
  first.probes->Start();
  first.keep_warm = std::make_unique<KeepWarm>(context, first.loop);
  first.keep_warm->Start();
  if (config.admin_listen().empty()) return {};
  HIDANE_TRY(const net::Address admin, net::ParseListen(config.admin_listen()));
  HIDANE_CHECK_OK(net::CheckPortFree(admin));
  first.admin = std::make_unique<Admin>(context);
  Admin* handler = first.admin.get();
  HIDANE_TRY(first.admin_server,
             net::Server::Listen(
                 first.loop, admin, [handler](net::Exchange& x) { return handler->Handle(x); },
                 OptionsOf(config)));
  admin_port = first.admin_server->port();
  return {};
}

void Gateway::Impl::Run() {
  AddFleetMetrics(context);
  for (auto& shard : shards) shard->thread = std::thread([s = shard.get()] { s->loop.Run(); });
  supervisor = std::thread([this] { Supervise(); });
}

Gateway::Impl::~Impl() {
  Enter(State::kStopping);
  if (supervisor.joinable()) supervisor.join();
}

void Gateway::Impl::Enter(State next) {
  const std::lock_guard lock(mutex);
  state = std::max(state, next);
  changed.notify_all();
}

void Gateway::Impl::PostAll(void (*fn)(Shard&)) {
  for (auto& shard : shards) shard->loop.Post([fn, s = shard.get()] { fn(*s); });
}

template <class Done>
void Gateway::Impl::WaitFor(Done done, std::chrono::steady_clock::time_point until,
                            bool interruptible) {
  constexpr auto kPoll = std::chrono::milliseconds(5);
  std::unique_lock lock(mutex);
  while (!done() && std::chrono::steady_clock::now() < until &&
         !(interruptible && state == State::kStopping))
    changed.wait_for(lock, kPoll);
}

void Gateway::Impl::Supervise() {
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return state != State::kRunning; });
  }
  Drain();
  Cut();
  for (auto& shard : shards) {
    shard->loop.Stop();
    shard->thread.join();
  }
}

/// Lets what runs come to its end while new connections are still served; then no listener, and
/// what had just arrived comes to its end too.
void Gateway::Impl::Drain() {
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(context.config->server_drain_ms());
  PostAll([](Shard& shard) { shard.server->Drain(); });
  WaitFor([this] { return context.in_flight == 0; }, until, true);
  PostAll([](Shard& shard) { shard.server->CloseListener(); });
  const auto closed = [this] {
    PostAll([](Shard& shard) { shard.connections = shard.server->connections(); });
    return std::all_of(shards.begin(), shards.end(),
                       [](const auto& shard) { return shard->connections == 0; });
  };
  WaitFor(closed, until, true);
}

/// Ends every coroutine, so that nothing waits on a loop when it is destroyed.
void Gateway::Impl::Cut() {
  PostAll([](Shard& shard) {
    shard.server.reset();
    shard.admin_server.reset();
    if (shard.probes) shard.probes->Stop();
    if (shard.keep_warm) shard.keep_warm->Stop();
  });
  const Duration probe = std::chrono::milliseconds(context.config->health_timeout_ms());
  const auto until = std::chrono::steady_clock::now() + std::max(probe, KeepWarm::kLongest) +
                     std::chrono::seconds(1);
  WaitFor([this] { return context.in_flight == 0 && context.probes == 0; }, until, false);
}

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Gateway>> Gateway::Start(std::unique_ptr<Config> config) {
  HIDANE_TRY(auto addresses, ResolveAll(*config));
  auto impl = std::make_unique<Impl>(std::move(config), std::move(addresses));
  HIDANE_CHECK_OK(impl->Listen());
  impl->Run();
  std::unique_ptr<Gateway> gateway(new Gateway(std::move(impl)));
  log::Info("gateway.started", {{"data_port", gateway->data_port()},
                                {"admin_port", gateway->admin_port()},
                                {"workers", gateway->impl_->context.fleet.size()},
                                {"threads", gateway->impl_->shards.size()}});
  return gateway;
}

Gateway::~Gateway() = default;
uint16_t Gateway::data_port() const {
  return impl_->data_port;
}
uint16_t Gateway::admin_port() const {
  return impl_->admin_port;
}

void Gateway::Drain() {
  if (!impl_->context.draining.exchange(true)) log::Info("gateway.draining");
  impl_->Enter(Impl::State::kDraining);
}

void Gateway::Stop() {
  impl_->Enter(Impl::State::kStopping);
}

void Gateway::Join() {
  if (impl_->supervisor.joinable()) impl_->supervisor.join();
}

}  // namespace hidane::gateway
