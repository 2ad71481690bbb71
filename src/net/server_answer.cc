#include <fmt/compile.h>
#include <fmt/format.h>

#include "net/server_connection.h"

namespace hidane::net {

void Connection::AppendHead(const ResponseHead& head, std::optional<uint64_t> size) {
  const bool bodiless = head.status < 200 || head.status == 204 || head.status == 304;
  no_body_ = bodiless || head_.method == "HEAD";
  out_framing_ = {};
  if (!bodiless && size) {
    out_framing_ = {.framing = Framing::kLength, .length = *size};
    out_left_ = *size;
  } else if (!bodiless) {
    out_framing_.framing = meta_.http_1_0 ? Framing::kUntilClose : Framing::kChunked;
  }
  const bool can_drain = body_done_ || (continue_sent_ && meta_.framing == Framing::kLength &&
                                        body_left_ <= core_->options.drain_body_max);
  if (core_->draining || !can_drain || out_framing_.framing == Framing::kUntilClose) close_ = true;
  out_framing_.close = close_;
  AppendResponseHead(out_, head, out_framing_, core_->Date());
  // HTTP/1.0 keeps a connection only when told so.
  if (meta_.http_1_0 && !close_) out_.insert(out_.size() - 2, "connection: keep-alive\r\n");
}

Task<Status> Connection::Respond(ResponseHead head, std::string_view body) {
  if (answer_ != Answer::kNone) co_return Fail(Code::kInternal, "answered twice");
  AppendHead(head, body.size());
  answer_ = Answer::kDone;
  Pieces pieces{Piece(out_), Piece(body)};
  const size_t count = no_body_ || body.empty() ? 1 : 2;
  const Status sent = co_await WriteAll({pieces.data(), count});
  out_.clear();
  co_return sent;
}

void Connection::WriteHead(ResponseHead head) {
  if (answer_ != Answer::kNone) return;
  AppendHead(head, head.body_size);
  answer_ = Answer::kStreaming;
}

Task<Status> Connection::Write(std::string_view bytes) {
  return WriteBody(bytes, false);
}

Task<Status> Connection::Flush() {
  if (out_.empty()) co_return Status{};
  Pieces pieces{Piece(out_)};
  const Status sent = co_await WriteAll({pieces.data(), 1});
  out_.clear();
  co_return sent;
}

Task<Status> Connection::Finish(std::string_view last) {
  return WriteBody(last, true);
}

Task<Status> Connection::WriteBody(std::string_view bytes, bool last) {
  if (bytes.empty() && !last) co_return Status{};
  if (answer_ != Answer::kStreaming) co_return Fail(Code::kInternal, "no answer is open");
  if (dead_) co_return Fail(Code::kCancelled, "the client went away");
  if (out_framing_.framing == Framing::kLength && !no_body_) {
    const bool wrong = last ? bytes.size() != out_left_ : bytes.size() > out_left_;
    if (wrong) {
      Abort();
      co_return Fail(Code::kInternal, "the body is not as long as its head said");
    }
    out_left_ -= bytes.size();
  }
  if (last) answer_ = Answer::kDone;
  if (no_body_) bytes = {};
  const bool chunked = out_framing_.framing == Framing::kChunked && !no_body_;
  if (chunked && !bytes.empty()) {
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE("{:x}\r\n"), bytes.size());
  }
  std::string_view tail;
  if (chunked && !bytes.empty()) tail = last ? "\r\n0\r\n\r\n" : "\r\n";
  if (chunked && bytes.empty() && last) tail = "0\r\n\r\n";
  Pieces pieces;
  size_t count = 0;
  for (const std::string_view piece : {std::string_view(out_), bytes, tail}) {
    if (!piece.empty()) pieces[count++] = Piece(piece);
  }
  std::span<iovec> rest(pieces.data(), count);
  Status sent;
  if (stream_.WriteMost(rest) != Io::kDone) sent = co_await WriteAll(rest);
  out_.clear();
  co_return sent;
}

void Connection::Abort() {
  if (answer_ == Answer::kDone) return;
  answer_ = Answer::kAborted;
  close_ = true;
}

iovec Connection::Piece(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

Task<Status> Connection::WriteAll(std::span<iovec> pieces) {
  bool waited = false;
  for (;;) {
    const Io io = stream_.WriteMost(pieces);
    if (io == Io::kDone) break;
    if (io != Io::kWouldBlock) co_return Dead(Code::kCancelled, "the client went away");
    stream_.SetDeadline(core_->options.write_stall);
    waited = true;
    co_await stream_.Writable();
    if (stream_.timed_out()) {
      stream_.Reset();  // what the kernel holds for it is freed too
      co_return Dead(Code::kDeadlineExceeded, "the client takes nothing");
    }
  }
  if (waited) stream_.ClearDeadline();
  co_return Status{};
}

}  // namespace hidane::net
