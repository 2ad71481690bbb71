#include "load/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "net/client.h"
#include "net/loop.h"
#include "net/sse.h"
#include "net/url.h"

namespace hidane::load {
namespace {

using net::ClientStream;
using net::Task;

constexpr size_t kAnswerBytesMax = 16 << 20;
constexpr size_t kDetailMax = 200;
constexpr Duration kTick = std::chrono::milliseconds(100);

struct Endpoint {
  net::Url url;
  net::Address address;
};

Result<Endpoint> EndpointOf(const Target& target) {
  HIDANE_TRY(net::Url url, net::ParseUrl(target.url));
  if (url.base == "/v1") url.base.clear();
  HIDANE_TRY(const std::vector<net::Address> addresses, net::Resolve(url.host, url.port));
  return Endpoint{std::move(url), addresses.at(0)};
}

net::RequestHead HeadFor(const Endpoint& endpoint, const Target& target, std::string_view method,
                         std::string_view path) {
  net::RequestHead head;
  head.method = method;
  head.target = endpoint.url.base + std::string(path);
  head.authority = endpoint.url.Authority();
  head.headers.Add("content-type", "application/json");
  if (!target.api_key.empty()) head.headers.Add("authorization", "Bearer " + target.api_key);
  return head;
}

End EndOfFailure(net::Failure failure, bool timed_out) {
  if (timed_out || failure == net::Failure::kTimeout) return End::kTimeout;
  if (failure == net::Failure::kCut || failure == net::Failure::kAborted) return End::kCut;
  return failure == net::Failure::kProtocol ? End::kProtocol : End::kConnect;
}

/// One run: the loop, its clients, and what became of each request.
class Session {
 public:
  Session(const Target& target, Endpoint endpoint, const Workload& workload,
          std::span<const PlannedRequest> plan, const RunOptions& options)
      : target_(target),
        endpoint_(std::move(endpoint)),
        workload_(workload),
        plan_(plan),
        options_(options),
        pool_(loop_, PoolOptions(options)),
        outcomes_(plan.size()),
        start_(SteadyClock().Now()) {
    progress_.total = static_cast<uint32_t>(plan.size());
  }

  std::vector<Outcome> Run() {
    if (plan_.empty()) return {};
    const bool open = options_.concurrency == 0;
    const size_t clients = open ? 1 : std::min<size_t>(options_.concurrency, plan_.size());
    busy_ = clients;
    for (size_t i = 0; i < clients; ++i) loop_.Spawn(open ? Arrivals() : Client());
    loop_.Spawn(Ticker());
    loop_.Run();
    outcomes_.resize(next_);
    return std::move(outcomes_);
  }

 private:
  static net::ClientOptions PoolOptions(const RunOptions& options) {
    net::ClientOptions pool;
    pool.idle_per_address_max = std::max<uint32_t>(options.concurrency, 256);
    return pool;
  }

  Duration Elapsed() const { return SteadyClock().Now() - start_; }

  /// Closed loop: as one request ends the next begins.
  Task<> Client() {
    while (next_ < plan_.size() && !stopping_) {
      const size_t i = next_++;
      outcomes_[i].intended = Elapsed();
      co_await One(i);
    }
    Left();
  }

  /// Open loop: each request at its time, whatever became of those before.
  Task<> Arrivals() {
    while (next_ < plan_.size() && !stopping_) {
      const Duration at = plan_[next_].at, now = Elapsed();
      if (at > now) {
        co_await loop_.SleepFor(std::min(at - now, kTick));
        continue;  // an early end must not wait for the next arrival
      }
      const size_t i = next_++;
      outcomes_[i].intended = at;
      ++busy_;
      loop_.Spawn(Arrival(i));
    }
    Left();
  }

  Task<> Arrival(size_t i) {
    if (live_.size() >= options_.in_flight_max) {
      outcomes_[i].sent = outcomes_[i].done = Elapsed();
      outcomes_[i].end = End::kNotSent;
      Count(outcomes_[i]);
    } else {
      co_await One(i);
    }
    Left();
  }

  Task<> One(size_t i) {
    Outcome& outcome = outcomes_[i];
    outcome.tenant = plan_[i].tenant;
    const std::string body = workload_.Body(plan_[i]);
    outcome.sent = Elapsed();
    ++progress_.sent;
    bool timed_out = false;
    // An idle connection that the server has just closed is replaced once, as every client does.
    for (int attempt = 0; attempt < 2; ++attempt) {
      ClientStream stream(pool_);
      net::Deadline deadline(loop_, [&] { timed_out = true, stream.Abort(); });
      deadline.Arm(target_.timeout);
      live_.insert(&stream);
      const Status status = co_await Exchange(stream, body, attempt == 0, outcome);
      live_.erase(&stream);
      if (status) break;
      if (stream.failure() == net::Failure::kStale && attempt == 0 && !stopping_) continue;
      outcome.end = EndOfFailure(stream.failure(), timed_out);
      outcome.detail = status.error().what.substr(0, kDetailMax);
      break;
    }
    outcome.done = Elapsed();
    Count(outcome);
  }

  /// Sends and reads one answer; an error is one of the connection, all else is in `outcome`.
  Task<Status> Exchange(ClientStream& stream, std::string_view body, bool reuse, Outcome& outcome) {
    net::RequestHead head = HeadFor(endpoint_, target_, "POST", "/v1/chat/completions");
    const std::string_view pieces[] = {body};
    const net::CallTimeouts timeouts{.connect = std::chrono::seconds(5)};
    Status sent = co_await stream.Send(endpoint_.address, std::move(head), pieces, timeouts, reuse);
    if (!sent) co_return sent;
    Result<net::ResponseHead> answer = co_await stream.ReadHead();
    if (!answer) co_return Fail(std::move(answer).error());
    outcome.worker = answer->headers.Get("x-hidane-worker").value_or("");
    if (answer->status == 200) co_return co_await ReadStream(stream, outcome);
    outcome.end = EndOfStatus(answer->status);
    Result<net::Buffer> text = co_await stream.ReadAll(kAnswerBytesMax);
    if (text) outcome.detail = text->view().substr(0, kDetailMax);
    co_return Status();
  }

  Task<Status> ReadStream(ClientStream& stream, Outcome& outcome) {
    net::SseSplitter splitter(kAnswerBytesMax);
    AnswerReader reader(outcome);
    for (;;) {
      Result<std::string_view> some = co_await stream.ReadSome();
      if (!some && outcome.end == End::kOk && !reader.done()) {
        co_return Fail(std::move(some).error());
      }
      if (!some || some->empty()) break;
      splitter.Feed(*some);
      while (const auto event = splitter.Next()) {
        if (!event->data.empty()) reader.OnEvent(event->data, Elapsed());
      }
    }
    reader.OnEnd(Elapsed());
    co_return Status();
  }

  void Count(const Outcome& outcome) {
    ++progress_.done;
    progress_.errors += !outcome.ok();
    progress_.prompt_tokens += outcome.prompt_tokens;
    progress_.cached_tokens += outcome.cached_tokens;
  }

  /// Calls on_progress until nothing is under way; then the loop ends.
  Task<> Ticker() {
    while (busy_ > 0) {
      co_await loop_.SleepFor(kTick);
      progress_.elapsed_s = Seconds(Elapsed());
      if (stopping_ || !options_.on_progress || options_.on_progress(progress_)) continue;
      stopping_ = true;
      for (ClientStream* stream : live_) stream->Abort();
    }
  }

  void Left() {
    if (--busy_ == 0) loop_.Stop();
  }

  const Target& target_;
  const Endpoint endpoint_;
  const Workload& workload_;
  const std::span<const PlannedRequest> plan_;
  const RunOptions& options_;
  net::Loop loop_;
  net::ClientPool pool_;
  std::vector<Outcome> outcomes_;
  const TimePoint start_;
  Progress progress_;
  std::set<ClientStream*> live_;
  size_t next_ = 0;  // of the plan
  size_t busy_ = 0;  // coroutines that still send
  bool stopping_ = false;
};

}  // namespace

Result<std::vector<Outcome>> Run(const Target& target, const Workload& workload,
                                 std::span<const PlannedRequest> plan, const RunOptions& options) {
  HIDANE_TRY(Endpoint endpoint, EndpointOf(target));
  return Session(target, std::move(endpoint), workload, plan, options).Run();
}

Result<HttpAnswer> Call(const Target& target, std::string_view method, std::string_view path,
                        std::string_view body) {
  HIDANE_TRY(const Endpoint endpoint, EndpointOf(target));
  auto answer = net::FetchBlocking(endpoint.address, HeadFor(endpoint, target, method, path), body,
                                   kAnswerBytesMax, target.timeout);
  if (!answer) {
    return Fail(Code::kUnavailable, fmt::format("{}{}: {}", target.url, path, answer.error().what));
  }
  return HttpAnswer{answer->head.status, std::string(answer->body.view())};
}

}  // namespace hidane::load
