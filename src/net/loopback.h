#pragma once
// For tests only: servers on a thread of their own, and raw sockets that block.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "net/client.h"
#include "net/server.h"

namespace hidane::net {

/// A server on a loop and thread of its own, at a free port.
class LoopbackServer {
 public:
  explicit LoopbackServer(Handler handler, ServerOptions options = {}) {
    address_ = *ParseListen("127.0.0.1:0");
    server_ = *Server::Listen(loop_, address_, std::move(handler), options);
    address_.set_port(server_->port());
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LoopbackServer() {
    loop_.Stop();
    thread_.join();
  }
  const Address& address() const { return address_; }
  Server& server() { return *server_; }
  Loop& loop() { return loop_; }
  /// Runs `fn` on the loop's thread and waits for it.
  template <class Fn>
  void OnLoop(Fn fn) {
    std::atomic<bool> done{false};
    loop_.Post([&] {
      fn();
      done = true;
      done.notify_all();
    });
    done.wait(false);
  }
  size_t connections() {
    size_t n = 0;
    OnLoop([&] { n = server_->connections(); });
    return n;
  }

 private:
  Loop loop_;
  Address address_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// A blocking socket. Reads give up after 10 s.
class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {}
  explicit RawSocket(const Address& to, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    if (::connect(fd_, static_cast<const sockaddr*>(to.raw()), to.raw_size()) != 0) Close();
  }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~RawSocket() { Close(); }

  bool open() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void HalfClose() { ::shutdown(fd_, SHUT_WR); }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  /// What comes until `until` is among it, the peer closes, or `ms` have passed without a byte.
  std::string ReadUntil(std::string_view until, int ms = 10'000) {
    std::string all;
    while (until.empty() || all.find(until) == std::string::npos) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, ms) <= 0) return all + "<silence>";
      char some[4096];
      const ssize_t n = ::recv(fd_, some, sizeof some, 0);
      if (n < 0) return all + "<reset>";
      if (n == 0) return all + "<end>";
      all.append(some, static_cast<size_t>(n));
    }
    return all;
  }
  std::string ReadToEnd() { return ReadUntil({}); }

 private:
  int fd_;
};

/// A listening socket whose connections a test answers by hand.
class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_ = *ParseListen("127.0.0.1:0");
    ::bind(fd_, static_cast<sockaddr*>(address_.raw()), address_.raw_size());
    ::listen(fd_, 16);
    socklen_t size = address_.raw_size();
    ::getsockname(fd_, static_cast<sockaddr*>(address_.raw()), &size);
  }
  ~RawListener() { ::close(fd_); }
  const Address& address() const { return address_; }
  RawSocket Accept() { return RawSocket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  int fd_;
  Address address_;
};

}  // namespace hidane::net
