#pragma once
#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "net/address.h"
#include "net/reactor.h"

namespace hidane::net {

enum class Io : uint8_t { kDone, kWouldBlock, kEnd, kBroken };
struct IoResult {
  Io io;
  size_t n = 0;  ///< bytes, with kDone
};

/// The byte stream under a connection. What a codec may ask of it is here; TLS would be another
/// class of this shape. Reads and writes never block: try first, wait only after kWouldBlock. A
/// short read or write means that the next would block, so that no call is spent to find out.
class TcpStream final : Watch, TimerWheel::Timer, ReadyNode {
 public:
  /// Takes a connected (or connecting) non-blocking socket.
  TcpStream(Reactor& reactor, int fd, bool connecting);
  ~TcpStream();

  IoResult Read(std::span<char> into);
  IoResult Write(std::span<const iovec> pieces);  ///< REQUIRES: at most 64 pieces
  /// Writes until all is written, kDone, or no more can be. `pieces` becomes what is left.
  Io WriteMost(std::span<iovec>& pieces);

  /// `co_await stream.Readable();` goes on when Read may have news, the deadline has passed or the
  /// stream was closed. One waiter each.
  auto Readable() { return read_.Suspend(); }
  auto Writable() { return write_.Suspend(); }
  /// From now on input wakes who waits in Writable too: an answer may come before a request is out.
  void InputWakesWriter() { input_wakes_writer_ = true; }
  /// Lets the other coroutines of the loop run: for one that never has to wait.
  auto Yield() {
    yield_ = true;
    reactor_.Ready(*this);
    return read_.Suspend();
  }

  /// One deadline for both directions; it stays passed until set or cleared.
  void SetDeadline(Duration after);
  void ClearDeadline();
  bool timed_out() const { return timed_out_; }

  /// The peer closed its end, or the connection is gone.
  bool hung_up() const { return hung_up_; }
  /// Calls `fn` once when it does, from the loop; at once from the loop if it has.
  void OnHangUp(std::function<void()> fn);
  /// Data or an end has come that nobody read: a connection out of a pool must not be used.
  bool has_news() const { return readable_; }

  bool open() const { return fd_ >= 0; }
  void ShutdownWrite();
  void Close();  ///< wakes who waits; counts as a hang-up
  void Reset();  ///< Close, and the peer sees a reset at once
  /// Errno of a connect that has ended, 0 for none. REQUIRES: Writable returned
  int ConnectError();

 private:
  void OnEvents(uint32_t events) override;
  void OnDue() override;
  void Run() override;

  int fd_;
  bool readable_, writable_, hung_up_ = false, timed_out_ = false, yield_ = false;
  bool input_wakes_writer_ = false;
  Waiter read_, write_;
  std::function<void()> on_hang_up_;
};

/// A non-blocking socket on its way to `address`, no Nagle. kUnavailable at once if the kernel
/// says so.
Result<int> StartConnect(const Address& address);
/// A listening socket. kUnavailable names the address.
Result<int> OpenListener(const Address& address, bool reuse_port);
Address LocalAddress(int fd);

}  // namespace hidane::net
