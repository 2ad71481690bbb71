#include <fmt/format.h>

#include <algorithm>

#include "net/server_connection.h"

namespace hidane::net {
namespace {

constexpr size_t kBodyStep = 1 << 20;  // memory follows the bytes, not what a client promises
constexpr size_t kPooledBody = 64 << 10;

Status TooLarge(size_t limit) {
  return Fail(Code::kTooLarge, fmt::format("the body is over {} bytes", limit));
}

}  // namespace

Task<Result<Buffer>> Connection::ReadBody(size_t limit) {
  Buffer body;
  body.Prepare(0);
  if (body_done_) co_return body;
  Status status;
  if (head_.body_size.value_or(0) > limit) {
    status = TooLarge(limit);
  } else {
    if (!continue_sent_) status = co_await SendContinue();
    stream_.SetDeadline(core_->options.body_window);
    if (status && meta_.framing == Framing::kLength) status = co_await ReadLength(body);
    if (status && meta_.framing == Framing::kChunked) status = co_await ReadChunked(body, limit);
    stream_.ClearDeadline();
  }
  if (status) co_return body;
  close_ = true;
  co_return Fail(std::move(status).error());
}

void Connection::TakeBack(Buffer body) {
  if (body.capacity() >= kPooledBody) core_->bodies.Give(std::move(body));
}

Task<Status> Connection::SendContinue() {
  if (std::exchange(continue_sent_, true) || !unread().empty()) co_return Status{};
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  Pieces pieces{Piece(kContinue)};
  co_return co_await WriteAll({pieces.data(), 1});
}

Task<Status> Connection::ReadLength(Buffer& body) {
  const auto held = unread().substr(0, std::min<uint64_t>(body_left_, unread().size()));
  const size_t first = std::min<uint64_t>(body_left_, kBodyStep);
  if (first >= kPooledBody) body = core_->bodies.Take(first);
  body.Prepare(first);
  body.Append(held);
  body_left_ -= held.size();
  Consume(held.size());
  while (body_left_ > 0) {
    const auto room = body.Prepare(std::min<uint64_t>(body_left_, kBodyStep));
    // One byte more than the body has, into the padding: a read that comes short of it says that
    // nothing waits behind, and the next head is not asked for in vain.
    const bool to_end = body_left_ <= room.size();
    const size_t most = to_end ? body_left_ + 1 : room.size();
    const IoResult read = stream_.Read({room.data(), most});
    if (read.io == Io::kDone) {
      const size_t n = std::min<uint64_t>(read.n, body_left_);
      if (read.n > n) in_.Append({room.data() + n, 1});
      body.Commit(n);
      body_left_ -= n;
      window_bytes_ += n;
    } else if (read.io == Io::kWouldBlock) {
      const Status waited = co_await BodyWait();
      if (!waited) co_return waited;
    } else {
      co_return Dead(Code::kCancelled, "the client went away in the middle of its body");
    }
  }
  body_done_ = true;
  co_return Status{};
}

Task<Status> Connection::ReadChunked(Buffer& body, size_t limit) {
  for (;;) {
    const std::span<char> held(in_.data() + at_, in_.size() - at_);
    ChunkedDecoder::Step step;
    if (const HttpError error = chunked_.Decode(held, step)) {
      co_return Fail(Code::kInvalidArgument, std::string(error.rule));
    }
    if (body.size() + step.body > limit) co_return TooLarge(limit);
    body.Append({held.data(), step.body});
    Consume(step.consumed);
    if (chunked_.done()) break;
    in_.Prepare(kBodyStep / 16);
    const Status filled = co_await FillBody();
    if (!filled) co_return filled;
  }
  body_done_ = true;
  co_return Status{};
}

Task<Status> Connection::FillBody() {
  for (;;) {
    const size_t before = in_.size() - at_;
    const Status filled = co_await Fill();
    window_bytes_ += in_.size() - before;
    if (filled || filled.error().code != Code::kDeadlineExceeded) co_return filled;
    const Status fast = CheckRate();
    if (!fast) co_return fast;
  }
}

Task<Status> Connection::BodyWait() {
  co_await stream_.Readable();
  if (!stream_.timed_out()) co_return Status{};
  co_return CheckRate();
}

Status Connection::CheckRate() {
  if (window_bytes_ < core_->options.body_window_bytes) {
    return Fail(Code::kDeadlineExceeded, "the body comes too slowly");
  }
  window_bytes_ = 0;
  stream_.SetDeadline(core_->options.body_window);
  return {};
}

Task<bool> Connection::DrainBody() {
  if (body_done_) co_return true;
  // A client that waits for `100 Continue` may send its body or not: no telling what comes next.
  if (!continue_sent_) co_return false;
  const uint64_t limit = core_->options.drain_body_max;
  if (meta_.framing == Framing::kLength && body_left_ > limit) co_return false;
  const auto read = co_await ReadBody(limit);
  co_return read.has_value();
}

}  // namespace hidane::net
