#include "net/server_connection.h"

#include <ctime>

#include "base/error_map.h"

namespace hidane::net {
namespace {

constexpr size_t kReadSize = 16 << 10;
constexpr size_t kLingerBytes = 1 << 20;
constexpr Duration kLingerTime = std::chrono::seconds(2);

}  // namespace

std::string_view ServerCore::Date() {
  const time_t now = ::time(nullptr);
  if (now != date_second_) {
    date_second_ = now;
    tm utc{};
    ::gmtime_r(&now, &utc);
    char text[40];
    date_.assign(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc));
  }
  return date_;
}

Task<> Connection::Serve(std::unique_ptr<Connection> connection) {
  co_await connection->Run();
}

Connection::Connection(std::shared_ptr<ServerCore> core, int fd, const Address& peer)
    : core_(std::move(core)), stream_(core_->loop.reactor(), fd, false), peer_(peer) {
  core_->connections.push_back(*this);
  ++core_->count;
}

Connection::~Connection() {
  core_->spare.Give(std::move(in_));
  unlink();
  --core_->count;
  core_->slot_free.Notify();
  if (core_->count == 0) core_->drained.Notify();
}

void Connection::CloseIfIdle() {
  if (idle_) stream_.Close();
}

Task<> Connection::Run() {
  for (bool more = true; more;) {
    more = co_await ReadHead();
    if (!more) break;
    BeginExchange();
    co_await core_->handler(*this);
    more = co_await EndExchange();
  }
}

void Connection::Consume(size_t n) {
  at_ += n;
  if (at_ == in_.size()) {
    in_.Clear();
    at_ = 0;
  }
}

Task<Status> Connection::Fill() {
  if (in_.capacity() == 0) in_ = core_->spare.Take();
  in_.DropFront(std::exchange(at_, 0));
  for (;;) {
    const auto room = in_.Prepare(kReadSize);
    const IoResult read = stream_.Read(room);
    if (read.io == Io::kDone) {
      in_.Commit(read.n);
      if (++reads_ % 64 == 0) co_await stream_.Yield();
      co_return Status{};
    }
    if (read.io != Io::kWouldBlock) co_return Dead(Code::kCancelled, "the client went away");
    if (in_.empty() && idle_) core_->spare.Give(std::exchange(in_, Buffer{}));
    co_await stream_.Readable();
    if (stream_.timed_out()) co_return Fail(Code::kDeadlineExceeded, "the client is too slow");
    if (in_.capacity() == 0) in_ = core_->spare.Take();
  }
}

Task<bool> Connection::ReadHead() {
  scanner_.Reset();
  idle_ = unread().empty();
  if (idle_ && core_->draining && answer_ != Answer::kNone) co_return false;
  stream_.SetDeadline(idle_ ? core_->options.idle_timeout : core_->options.head_timeout);
  for (;;) {
    HttpError error;
    if (const auto size = scanner_.Scan(unread(), core_->options.head, error)) {
      idle_ = false;
      error = ParseRequestHead(unread().substr(0, *size), core_->options.head, head_, meta_);
      if (!error) {
        Consume(*size);
        co_return true;
      }
    }
    if (error) {
      co_await Refuse(error);
      co_return false;
    }
    const Status filled = co_await Fill();
    if (!filled) {
      const HttpError slow{408, "head did not arrive in time"};
      if (filled.error().code == Code::kDeadlineExceeded && !idle_) co_await Refuse(slow);
      co_return false;
    }
    if (idle_) stream_.SetDeadline(core_->options.head_timeout);
    idle_ = false;
  }
}

void Connection::BeginExchange() {
  stream_.ClearDeadline();
  body_done_ = meta_.framing == Framing::kNone;
  body_left_ = head_.body_size.value_or(0);
  chunked_ = {};
  continue_sent_ = !meta_.expect_continue;
  close_ = !meta_.keep_alive;
  answer_ = Answer::kNone;
  window_bytes_ = 0;
  out_.clear();
}

Task<bool> Connection::EndExchange() {
  stream_.OnHangUp(nullptr);
  if (answer_ == Answer::kNone && !dead_) {
    const Error error{Code::kInternal, "the handler gave no answer", {}};
    ResponseHead head{.status = 500, .headers = {}, .body_size = {}};
    head.headers.Add("content-type", "application/json");
    const std::string body = ErrorBody(error);
    static_cast<void>(co_await Respond(std::move(head), body));
  }
  if (answer_ == Answer::kStreaming) Abort();
  if (dead_) co_return false;
  if (answer_ == Answer::kAborted && out_framing_.framing == Framing::kUntilClose) {
    stream_.Reset();  // an end would look like a proper one
    co_return false;
  }
  bool keep = !close_ && answer_ != Answer::kAborted;
  if (keep) keep = co_await DrainBody();
  if (!keep && !dead_) co_await Linger();
  co_return keep;
}

Task<> Connection::Refuse(HttpError error) {
  Code code = Code::kInvalidArgument;
  if (error.status == 408) code = Code::kDeadlineExceeded;
  if (error.status == 413 || error.status == 414 || error.status == 431) code = Code::kTooLarge;
  head_ = {};
  meta_ = {.framing = Framing::kNone, .http_1_0 = false, .keep_alive = false};
  BeginExchange();
  ResponseHead head{.status = error.status, .headers = {}, .body_size = {}};
  head.headers.Add("content-type", "application/json");
  const std::string body = ErrorBody({code, std::string(error.rule), {}});
  static_cast<void>(co_await Respond(std::move(head), body));
  if (!dead_) co_await Linger();
}

// A close with unread bytes would make the kernel send a reset, which can overtake the answer.
Task<> Connection::Linger() {
  stream_.ShutdownWrite();
  stream_.SetDeadline(kLingerTime);
  idle_ = false;
  for (size_t total = 0; total < kLingerBytes;) {
    in_.Clear();
    at_ = 0;
    const Status filled = co_await Fill();
    if (!filled) co_return;
    total += in_.size();
  }
}

Status Connection::Dead(Code code, std::string_view what) {
  dead_ = true;
  return Fail(code, std::string(what));
}

}  // namespace hidane::net
