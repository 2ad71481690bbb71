#include "net/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "net/client_pool.h"
#include "net/http1.h"

namespace hidane::net {
namespace {

constexpr size_t kReadSize = 64 << 10;
constexpr size_t kBodyStep = 1 << 20;
constexpr size_t kPiecesMax = 64;

iovec Piece(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};
}

}  // namespace

struct ClientStream::Impl {
  explicit Impl(std::shared_ptr<PoolCore> p) : pool(std::move(p)) {}
  ~Impl() { pool->spare.Give(std::move(in)); }

  Status Broken(Failure why, Code code, std::string_view what);
  Status Ended();  // the connection has, before the answer did
  Status Timeout(std::string_view what) {
    return Broken(Failure::kTimeout, Code::kDeadlineExceeded, what);
  }
  Status Protocol(std::string_view rule) {
    return Broken(Failure::kProtocol, Code::kDataLoss, rule);
  }
  void SetDeadline(Duration limit) {
    if (limit > Duration(0)) upstream->stream.SetDeadline(limit);
  }
  Task<Status> Connect();
  Task<Status> WriteAll(std::span<iovec> pieces);
  Task<Status> SendBody(std::span<const std::string_view> body);
  Task<Status> Fill();
  Result<std::string_view> Decode();
  void Release();  // the answer has ended properly

  std::shared_ptr<PoolCore> pool;
  std::unique_ptr<Upstream> upstream;  // none before Send and after the end
  Address address;
  CallTimeouts timeouts;
  Failure failure = Failure::kNone;
  bool reused = false, aborted = false, answered = false, send_broken = false, done = false;

  std::string out, method;
  Buffer in;
  size_t at = 0;  // in is used up to here
  HeadScanner scanner;
  ResponseMeta meta;
  uint64_t left = 0;
  ChunkedDecoder chunked;
  unsigned reads = 0;
};

ClientStream::ClientStream(ClientPool& pool) : impl_(std::make_unique<Impl>(pool.core_)) {}
ClientStream::~ClientStream() = default;
Failure ClientStream::failure() const {
  return impl_->failure;
}
bool ClientStream::ended() const {
  return impl_->done;
}
bool ClientStream::reused() const {
  return impl_->reused;
}

void ClientStream::Abort() {
  impl_->aborted = true;
  if (impl_->upstream) impl_->upstream->stream.Close();
}

Status ClientStream::Impl::Broken(Failure why, Code code, std::string_view what) {
  if (aborted) {
    why = Failure::kAborted;
    code = Code::kCancelled;
    what = "the call was aborted";
  }
  failure = why;
  if (upstream) upstream->stream.Close();
  return Fail(code, fmt::format("upstream {}: {}", address.ToString(), what));
}

Status ClientStream::Impl::Ended() {
  if (answered) return Broken(Failure::kCut, Code::kDataLoss, "the answer broke off");
  return Broken(reused ? Failure::kStale : Failure::kNoAnswer, Code::kUnavailable,
                "the connection ended without an answer");
}

Task<Status> ClientStream::Impl::Connect() {
  const auto fd = StartConnect(address);
  if (!fd) co_return Broken(Failure::kConnect, Code::kUnavailable, fd.error().what);
  upstream = std::make_unique<Upstream>(pool->loop.reactor(), *fd, address);
  SetDeadline(timeouts.connect);
  co_await upstream->stream.Writable();
  if (aborted || upstream->stream.timed_out()) {
    co_return Broken(Failure::kConnect, Code::kUnavailable, "no connection in time");
  }
  if (upstream->stream.ConnectError() != 0) {
    co_return Broken(Failure::kConnect, Code::kUnavailable, "connection refused");
  }
  upstream->stream.InputWakesWriter();
  upstream->stream.ClearDeadline();
  co_return Status{};
}

Task<Status> ClientStream::Impl::WriteAll(std::span<iovec> pieces) {
  for (;;) {
    const Io io = upstream->stream.WriteMost(pieces);
    if (io == Io::kDone) break;
    if (io != Io::kWouldBlock) {
      if (aborted) co_return Ended();
      send_broken = true;  // its answer may lie in our buffers all the same
      break;
    }
    SetDeadline(timeouts.send_stall);
    co_await upstream->stream.Writable();
    if (upstream->stream.timed_out()) co_return Timeout("takes no more of the request");
    upstream->stream.ClearDeadline();
    if (aborted) co_return Ended();
    send_broken = upstream->stream.has_news();  // an early answer: the rest is not wanted
    if (send_broken) break;
  }
  co_return Status{};
}

Task<Status> ClientStream::Impl::SendBody(std::span<const std::string_view> body) {
  std::array<iovec, kPiecesMax> pieces;
  size_t count = 0;
  pieces[count++] = Piece(out);
  for (const std::string_view piece : body) {
    if (piece.empty()) continue;
    if (count == kPiecesMax) {
      const Status sent = co_await WriteAll({pieces.data(), count});
      if (!sent || send_broken) co_return sent;
      count = 0;
    }
    pieces[count++] = Piece(piece);
  }
  std::span<iovec> rest(pieces.data(), count);
  if (upstream->stream.WriteMost(rest) == Io::kDone) co_return Status{};
  co_return co_await WriteAll(rest);
}

Task<Status> ClientStream::Send(Address address, RequestHead head,
                                std::span<const std::string_view> body, CallTimeouts timeouts,
                                bool reuse) {
  Impl& s = *impl_;
  s.address = address;
  s.timeouts = timeouts;
  s.method = head.method;
  if (s.aborted) co_return s.Ended();
  if (reuse) s.upstream = s.pool->Take(address);
  s.reused = s.upstream != nullptr;
  if (!s.reused) {
    const Status connected = co_await s.Connect();
    if (!connected) co_return connected;
  }
  SendFraming framing;
  for (const std::string_view piece : body) framing.length += piece.size();
  const bool expects_body = head.method != "GET" && head.method != "HEAD";
  if (framing.length > 0 || expects_body) framing.framing = Framing::kLength;
  AppendRequestHead(s.out, head, framing);
  co_return co_await s.SendBody(body);
}

Task<Status> ClientStream::Impl::Fill() {
  if (in.capacity() == 0) in = pool->spare.Take();
  in.DropFront(std::exchange(at, 0));
  for (;;) {
    const auto room = in.Prepare(kReadSize).first(kReadSize);
    const IoResult read = upstream->stream.Read(room);
    if (read.io == Io::kDone) {
      in.Commit(read.n);
      answered = true;
      if (++reads % 64 == 0) co_await upstream->stream.Yield();
      co_return Status{};
    }
    if (read.io == Io::kEnd && meta.framing == Framing::kUntilClose) {
      done = true;
      co_return Status{};
    }
    if (read.io != Io::kWouldBlock) co_return Ended();
    co_await upstream->stream.Readable();
    if (upstream->stream.timed_out()) co_return Timeout("is silent for too long");
  }
}

Task<Result<ResponseHead>> ClientStream::ReadHead() {
  Impl& s = *impl_;
  if (!s.upstream || s.failure != Failure::kNone) co_return Fail(s.Ended().error());
  s.SetDeadline(s.timeouts.first_byte);
  const HeadLimits& limits = s.pool->options.head;
  for (uint32_t informational = 0;;) {
    HttpError error;
    const auto size = s.scanner.Scan(s.in.view().substr(s.at), limits, error);
    if (size) {
      ResponseHead head;
      error = ParseResponseHead(s.in.view().substr(s.at, *size), limits, s.method, head, s.meta);
      s.at += *size;
      s.scanner.Reset();
      if (!error && head.status == 101) error = {502, "101 without a request for it"};
      if (!error && head.status >= 200) {
        s.left = head.body_size.value_or(0);
        s.upstream->stream.ClearDeadline();
        if (s.meta.framing == Framing::kNone) s.Release();
        co_return head;
      }
      if (!error && ++informational > s.pool->options.informational_max) {
        error = {502, "too many informational answers"};
      }
    }
    if (error) co_return Fail(s.Protocol(error.rule).error());
    if (size) continue;
    const Status filled = co_await s.Fill();
    if (!filled) co_return Fail(filled.error());
  }
}

void ClientStream::Impl::Release() {
  done = true;
  const bool clean = at == in.size() && !send_broken && !aborted;
  if (meta.keep_alive && clean) pool->Give(std::move(upstream));
  upstream.reset();
}

/// Bytes of the body that lie in `in`; empty if there are none.
Result<std::string_view> ClientStream::Impl::Decode() {
  char* const held = in.data() + at;
  const size_t size = in.size() - at;
  size_t body = size;
  switch (meta.framing) {
    case Framing::kLength:
      body = std::min<uint64_t>(left, size);
      at += body;
      left -= body;
      if (left == 0) Release();
      break;
    case Framing::kChunked: {
      ChunkedDecoder::Step step;
      if (const HttpError e = chunked.Decode({held, size}, step)) {
        return Fail(Protocol(e.rule).error());
      }
      body = step.body;
      at += step.consumed;
      if (chunked.done()) Release();
      break;
    }
    case Framing::kNone:
    case Framing::kUntilClose:
      at += size;
      break;
  }
  return std::string_view(held, body);
}

Task<Result<std::string_view>> ClientStream::ReadSome() {
  Impl& s = *impl_;
  for (;;) {
    if (s.done) co_return std::string_view{};
    if (!s.upstream || s.failure != Failure::kNone) co_return Fail(s.Ended().error());
    if (s.aborted) co_return Fail(s.Ended().error());
    if (s.at < s.in.size()) {
      const auto some = s.Decode();
      if (!some || !some->empty()) co_return some;
      continue;
    }
    s.SetDeadline(s.timeouts.read_stall);
    const Status filled = co_await s.Fill();
    if (!filled) co_return Fail(filled.error());
  }
}

Task<Result<Buffer>> ClientStream::ReadAll(size_t limit) {
  Buffer body;
  body.Prepare(std::min<uint64_t>({impl_->left, limit, kBodyStep}));
  for (;;) {
    const auto some = co_await ReadSome();
    if (!some) co_return Fail(some.error());
    if (some->empty()) co_return body;
    if (body.size() + some->size() > limit) {
      Abort();
      co_return Fail(Code::kTooLarge, fmt::format("the answer is over {} bytes", limit));
    }
    body.Append(*some);
  }
}

}  // namespace hidane::net
