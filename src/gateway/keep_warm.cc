#include "gateway/keep_warm.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hidane::gateway {
namespace {

constexpr size_t kAnswerMax = 1 << 20;

/// Counts among what Stop waits for.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

KeepWarm::KeepWarm(Context& context, net::Loop& loop)
    : context_(context), loop_(loop), pool_(loop, net::ClientOptions{}), woken_(loop) {}

void KeepWarm::Start() {
  if (context_.config->routing_keep_warm()) loop_.Spawn(Run());
}

void KeepWarm::Stop() {
  stopped_ = true;
  woken_.Notify();
}

net::Task<> KeepWarm::Run() {
  const Counted counted(context_.probes);
  while (!stopped_) {
    (void)co_await woken_.WaitFor(std::chrono::seconds(1));
    if (stopped_) break;
    const auto due = context_.fleet.WithRouter(
        [](routing::Router& router, TimePoint now) { return router.TakeRefreshes(now); });
    for (const routing::Refresh& refresh : due) loop_.Spawn(Send(refresh));
  }
}

net::RequestHead KeepWarm::HeadFor(const StaticPart& part, WorkerId worker) const {
  const UpstreamConfig& upstream = context_.fleet.upstream(worker);
  net::RequestHead head;
  head.method = "POST";
  head.target = part.target;
  head.authority = upstream.authority;
  head.headers.Add("content-type", "application/json");
  if (!upstream.api_key.empty()) head.headers.Add("authorization", "Bearer " + upstream.api_key);
  return head;
}

// One that fails says nothing of the worker: probes and clients' requests do.
net::Task<> KeepWarm::Send(routing::Refresh refresh) {
  const Counted counted(context_.probes);
  const auto part = context_.statics.Find(refresh.k1);
  if (part == nullptr) co_return;
  const auto decision = context_.fleet.WithRouter([&](routing::Router& router, TimePoint now) {
    auto routed = router.RouteRefresh(part->identity, refresh.worker, now);
    if (routed) router.OnDispatch(routed->ticket, now);
    return routed;
  });
  if (!decision) co_return;
  context_.metrics.Decisions(decision->rule).Add();
  net::RequestHead head = HeadFor(*part, refresh.worker);
  const auto answer = co_await net::Fetch(pool_, context_.addresses[refresh.worker.value()],
                                          std::move(head), part->body, kAnswerMax, kLongest);
  const bool ok = answer && answer->head.status / 100 == 2;
  if (ok) {
    UsageTail tail;
    tail.Feed(answer->body.view());
    context_.fleet.FirstByte(decision->ticket);
    if (const auto usage = tail.Finish()) Learn(decision->ticket, refresh.worker, *usage);
  }
  context_.fleet.Done(decision->ticket, ok ? routing::End::kComplete : routing::End::kAbandoned);
}

void KeepWarm::Learn(routing::Ticket ticket, WorkerId worker, const Usage& usage) {
  const auto count = [](int64_t n) { return static_cast<uint32_t>(std::max<int64_t>(n, 0)); };
  routing::Usage told{count(usage.prompt_tokens), count(usage.completion_tokens), std::nullopt};
  if (usage.cached_tokens >= 0) told.cached_tokens = count(usage.cached_tokens);
  context_.fleet.WithRouter(
      [&](routing::Router& router, TimePoint now) { router.OnUsage(ticket, told, now); });
  context_.fleet.OnUsageSeen(worker, usage);
}

}  // namespace hidane::gateway
