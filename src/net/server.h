#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/address.h"
#include "net/buffer.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/task.h"

namespace hidane::net {

/// One request and its answer: a stream of a connection, whatever the version of HTTP. Lives until
/// the handler returns. Loop thread only; one coroutine at a time.
///
///     Task<> Hello(Exchange& exchange) {
///       ResponseHead head{.status = 200};
///       head.headers.Add("content-type", "text/plain");
///       co_await exchange.Respond(std::move(head), "hello\n");
///     }
///
/// A handler that returns without an answer sends a 500. One that returns in the middle of a body
/// aborts it.
class Exchange {
 public:
  virtual const RequestHead& head() const = 0;
  virtual const Address& peer() const = 0;
  virtual Loop& loop() = 0;

  /// The whole body, contiguous and padded; a client that waits for `100 Continue` gets it now.
  /// kTooLarge as soon as the size is known to pass `limit` bytes, kDeadlineExceeded under the
  /// minimum rate, kInvalidArgument for broken framing, kCancelled when the client went away.
  /// After an error answer with Respond; the connection then closes by itself.
  virtual Task<Result<Buffer>> ReadBody(size_t limit) = 0;
  /// A body that nobody needs any more: its memory serves the next one.
  virtual void TakeBack(Buffer /*body*/) {}

  /// Sends head and body in one gathered write. `body` must live until it returns. Errors as
  /// Write's. HEAD, 204 and 304 send no body.
  virtual Task<Status> Respond(ResponseHead head, std::string_view body) = 0;

  /// Begins a streamed answer. Sends nothing yet: the head goes out with the first Write, or with
  /// Flush.
  virtual void WriteHead(ResponseHead head) = 0;
  /// Sends a piece of the body and returns when the kernel has it: what a slow client does not
  /// take holds up the writer, nothing is buffered here. `bytes` must live until it returns; empty
  /// does nothing. kCancelled: the client went away. kDeadlineExceeded: it took nothing for
  /// `write_stall`; the connection is then dead.
  virtual Task<Status> Write(std::string_view bytes) = 0;
  virtual Task<Status> Flush() = 0;  ///< sends a head that still waits
  /// Ends the body properly; `last` goes out with the end in one write.
  virtual Task<Status> Finish(std::string_view last = {}) = 0;
  /// Drops the connection without ending the body, so that the client sees a cut answer. Bytes
  /// already written still arrive.
  virtual void Abort() = 0;

  virtual bool head_sent() const = 0;  ///< WriteHead or Respond has been called
  /// The client has closed its end or is gone. What is written may still arrive at a client that
  /// only half-closed.
  virtual bool disconnected() const = 0;
  /// Calls `fn` once, on the loop, when that happens; at once if it has. One at a time: replaces
  /// the former; nullptr for none. Typically cancels what the handler waits for.
  virtual void OnDisconnect(std::function<void()> fn) = 0;

 protected:
  ~Exchange() = default;
};

/// Must outlive the server; its coroutine may use the exchange until it returns.
using Handler = std::function<Task<>(Exchange&)>;

struct ServerOptions {
  HeadLimits head{};
  uint32_t connections_max = 8192;                   ///< more wait in the backlog
  Duration head_timeout = std::chrono::seconds(10);  ///< first byte to whole head; then 408
  Duration idle_timeout = std::chrono::seconds(75);  ///< between requests; then a silent close
  Duration body_window = std::chrono::seconds(10);   ///< a body must bring, in each of these,
  uint32_t body_window_bytes = 10 << 10;             ///< this many bytes; else 408
  Duration write_stall = std::chrono::seconds(30);   ///< no progress of a write; then a cut
  uint64_t drain_body_max = 256 << 10;               ///< unread body read away to keep a connection
};

/// kUnavailable, naming the address, when somebody listens there: SO_REUSEPORT would share the
/// port with any process of the same user. Call before the first Listen.
Status CheckPortFree(const Address& address);

/// HTTP on one loop: one listening socket with SO_REUSEPORT, so that every loop of a process has
/// its own on the same port. Keep-alive; pipelined requests are answered in order.
class Server {
 public:
  /// kUnavailable when the address is in use; the message names it. Starts accepting when the
  /// loop runs. Call before the loop runs or on its thread.
  static Result<std::unique_ptr<Server>> Listen(Loop& loop, const Address& address, Handler handler,
                                                ServerOptions options);
  /// Closes the listener and cuts what is open. On the loop's thread, or when it doesn't run.
  virtual ~Server() = default;

  virtual uint16_t port() const = 0;  ///< the bound one
  virtual size_t connections() const = 0;
  /// Answers from now on say `Connection: close`, idle connections close; new ones are still
  /// accepted and served (a load balancer needs time to look away) until CloseListener.
  virtual void Drain() = 0;
  virtual void CloseListener() = 0;
  /// Returns when no connection is left. REQUIRES: one waiter.
  virtual Task<> WaitDrained() = 0;
};

}  // namespace hidane::net
