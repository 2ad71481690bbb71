#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/address.h"
#include "net/buffer.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/task.h"

namespace hidane::net {

struct ClientOptions {
  HeadLimits head{};
  Duration idle_max = std::chrono::seconds(4);  ///< idle sockets are dropped: servers do it at 5 s
  uint32_t idle_per_address_max = 256;
  uint32_t informational_max = 8;  ///< 1xx heads before the real one
};

struct PoolCore;

/// Upstream connections of one loop, kept alive between requests. Loop thread only.
class ClientPool {
 public:
  ClientPool(Loop& loop, ClientOptions options);
  Loop& loop();
  ~ClientPool();  ///< closes the idle ones; streams that are open go on
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  size_t idle() const;
  void CloseIdle();

 private:
  friend class ClientStream;
  std::shared_ptr<PoolCore> core_;
};

/// Limits of one call; zero = none.
struct CallTimeouts {
  Duration connect = std::chrono::seconds(2);
  Duration send_stall = std::chrono::seconds(30);  ///< no progress while sending
  Duration first_byte{};                           ///< request sent -> response head
  Duration read_stall{};                           ///< between pieces of the body
};

/// Why a call failed: what a proxy may do next hangs on it.
enum class Failure : uint8_t {
  kNone,
  kConnect,   ///< no connection: the server has seen nothing
  kStale,     ///< a reused connection died before any response byte: replay once on a fresh one
  kNoAnswer,  ///< a fresh connection died before any response byte
  kTimeout,   ///< a limit of CallTimeouts
  kCut,       ///< the answer broke off
  kProtocol,  ///< the answer is no HTTP that we trust
  kAborted,   ///< Abort was called
};

/// One request to an upstream and its answer: a stream of a connection.
///
///     ClientStream stream(pool);
///     const std::string_view body[] = {json};
///     auto sent = co_await stream.Send(address, std::move(head), body, timeouts, true);
///     auto response = co_await stream.ReadHead();
///     for (;;) {
///       auto some = co_await stream.ReadSome();
///       if (!some || some->empty()) break;      // an error or the end
///     }
///
/// After the end of a body the connection goes back to the pool; destroying a stream earlier
/// closes it at once, so that the upstream sees the client leave.
class ClientStream {
 public:
  explicit ClientStream(ClientPool& pool);
  ~ClientStream();
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  /// Sends head and body in gathered writes. `head.body_size` is set from `body`. The pieces and
  /// the span must live until it returns. `reuse`: an idle connection may serve. An upstream that
  /// answers and closes before it has read everything is no error here: ReadHead tells.
  Task<Status> Send(Address address, RequestHead head, std::span<const std::string_view> body,
                    CallTimeouts timeouts, bool reuse);
  /// The final head; 1xx ones are skipped. kUnavailable, kDeadlineExceeded, kDataLoss, kCancelled;
  /// failure() says more.
  Task<Result<ResponseHead>> ReadHead();
  /// The next bytes of the body as they come, framing taken off, at most 64 KiB; empty at the
  /// proper end. The view holds until the next call. kDataLoss when the answer breaks off.
  Task<Result<std::string_view>> ReadSome();
  /// The body has come to its proper end: what ReadSome gave last was the last of it.
  bool ended() const;
  /// The rest of the body. kTooLarge over `limit` bytes.
  Task<Result<Buffer>> ReadAll(size_t limit);

  /// Closes at once; a call that waits returns kCancelled. From any callback on the loop.
  void Abort();
  Failure failure() const;
  bool reused() const;  ///< Send took an idle connection

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct FetchResult {
  ResponseHead head;
  Buffer body;
};
/// A whole call: probes, metrics, tools. `total` bounds it all. Replays a stale connection once.
/// `body` must live until it returns.
Task<Result<FetchResult>> Fetch(ClientPool& pool, Address address, RequestHead head,
                                std::string_view body, size_t limit, Duration total);

/// The same from a thread without a loop; blocks.
Result<FetchResult> FetchBlocking(const Address& address, RequestHead head, std::string_view body,
                                  size_t limit, Duration total);

}  // namespace hidane::net
