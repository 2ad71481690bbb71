#include "net/tcp.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hidane::net {

TcpStream::TcpStream(Reactor& reactor, int fd, bool connecting)
    : ReadyNode(reactor),
      fd_(fd),
      readable_(!connecting),
      writable_(!connecting),
      read_(reactor),
      write_(reactor) {
  reactor.Add(fd, *this);
}

TcpStream::~TcpStream() {
  if (fd_ >= 0) ::close(fd_);
}

IoResult TcpStream::Read(std::span<char> into) {
  if (fd_ < 0) return {Io::kBroken};
  if (!readable_) return {Io::kWouldBlock};
  for (;;) {
    const ssize_t n = ::recv(fd_, into.data(), into.size(), 0);
    if (n > 0) {
      // The end of the stream gives no second edge.
      if (static_cast<size_t>(n) < into.size() && !hung_up_) readable_ = false;
      return {Io::kDone, static_cast<size_t>(n)};
    }
    if (n == 0) return {Io::kEnd};
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return {Io::kBroken};
    readable_ = false;
    return {Io::kWouldBlock};
  }
}

IoResult TcpStream::Write(std::span<const iovec> pieces) {
  if (fd_ < 0) return {Io::kBroken};
  if (!writable_) return {Io::kWouldBlock};
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  size_t wanted = 0;
  for (const iovec& piece : pieces) wanted += piece.iov_len;
  for (;;) {
    const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (n >= 0) {
      writable_ = static_cast<size_t>(n) == wanted;
      return {Io::kDone, static_cast<size_t>(n)};
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return {Io::kBroken};
    writable_ = false;
    return {Io::kWouldBlock};
  }
}

Io TcpStream::WriteMost(std::span<iovec>& pieces) {
  while (!pieces.empty()) {
    IoResult write = Write(pieces);
    if (write.io != Io::kDone) return write.io;
    while (!pieces.empty() && write.n >= pieces.front().iov_len) {
      write.n -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (pieces.empty()) break;
    pieces.front().iov_base = static_cast<char*>(pieces.front().iov_base) + write.n;
    pieces.front().iov_len -= write.n;
  }
  return Io::kDone;
}

void TcpStream::SetDeadline(Duration after) {
  timed_out_ = false;
  reactor_.Arm(*this, after);
}

void TcpStream::ClearDeadline() {
  timed_out_ = false;
  Disarm();
}

void TcpStream::OnHangUp(std::function<void()> fn) {
  on_hang_up_ = std::move(fn);
  if (on_hang_up_ && hung_up_) reactor_.Ready(*this);
}

void TcpStream::ShutdownWrite() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
}

void TcpStream::Close() {
  if (fd_ < 0) return;
  ::close(fd_);
  fd_ = -1;
  Disarm();
  read_.Wake();
  write_.Wake();
  hung_up_ = true;
  if (on_hang_up_) reactor_.Ready(*this);
}

void TcpStream::Reset() {
  const linger now{1, 0};
  if (fd_ >= 0) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Close();
}

int TcpStream::ConnectError() {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

void TcpStream::OnEvents(uint32_t events) {
  constexpr uint32_t kGone = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & (EPOLLIN | kGone)) != 0) {
    readable_ = true;
    read_.Wake();
    if (input_wakes_writer_) write_.Wake();
  }
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
    writable_ = true;
    write_.Wake();
  }
  if ((events & kGone) != 0 && !hung_up_) {
    hung_up_ = true;
    if (on_hang_up_) reactor_.Ready(*this);
  }
}

void TcpStream::OnDue() {
  timed_out_ = true;
  read_.Wake();
  write_.Wake();
}

void TcpStream::Run() {
  if (std::exchange(yield_, false)) read_.Wake();
  // May destroy this stream.
  if (hung_up_ && on_hang_up_) std::exchange(on_hang_up_, nullptr)();
}

namespace {

int NewSocket(const Address& address) {
  return ::socket(static_cast<const sockaddr*>(address.raw())->sa_family,
                  SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

void Set(int fd, int level, int option) {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

}  // namespace

Result<int> StartConnect(const Address& address) {
  const int fd = NewSocket(address);
  if (fd >= 0) {
    Set(fd, IPPROTO_TCP, TCP_NODELAY);
    const auto* to = static_cast<const sockaddr*>(address.raw());
    if (::connect(fd, to, address.raw_size()) == 0 || errno == EINPROGRESS) return fd;
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return Fail(Code::kUnavailable,
              fmt::format("can't connect to {}: {}", address.ToString(), std::strerror(error)));
}

Result<int> OpenListener(const Address& address, bool reuse_port) {
  const int fd = NewSocket(address);
  if (fd >= 0) {
    Set(fd, SOL_SOCKET, SO_REUSEADDR);
    if (reuse_port) Set(fd, SOL_SOCKET, SO_REUSEPORT);
    Set(fd, IPPROTO_TCP, TCP_NODELAY);  // accepted sockets inherit it
    const auto* at = static_cast<const sockaddr*>(address.raw());
    if (::bind(fd, at, address.raw_size()) == 0 && ::listen(fd, 4096) == 0) return fd;
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  return Fail(Code::kUnavailable,
              fmt::format("can't listen on {}: {}", address.ToString(), std::strerror(error)));
}

Address LocalAddress(int fd) {
  Address address;
  socklen_t size = 32;
  ::getsockname(fd, static_cast<sockaddr*>(address.raw()), &size);
  return address;
}

}  // namespace hidane::net
