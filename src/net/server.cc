#include "net/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "net/server_connection.h"

namespace hidane::net {
namespace {

constexpr Duration kNoFdPause = std::chrono::milliseconds(100);

/// The listening socket: says when accept may have news.
class Listener final : Watch {
 public:
  Listener(Reactor& reactor, int fd) : fd_(fd), waiter_(reactor) { reactor.Add(fd, *this); }
  ~Listener() { Close(); }

  auto Readable() { return waiter_.Suspend(); }
  int fd() const { return fd_; }
  void Close() {
    if (fd_ < 0) return;
    ::close(fd_);
    fd_ = -1;
    waiter_.Wake();
  }

 private:
  void OnEvents(uint32_t) override { waiter_.Wake(); }

  int fd_;
  Waiter waiter_;
};

Task<> Accept(std::shared_ptr<ServerCore> core, std::shared_ptr<Listener> listener) {
  while (listener->fd() >= 0) {
    if (core->count >= core->options.connections_max) {
      co_await core->slot_free.Wait();
      continue;
    }
    Address peer;
    socklen_t size = 32;
    const int fd = ::accept4(listener->fd(), static_cast<sockaddr*>(peer.raw()), &size,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      core->loop.Spawn(Connection::Serve(std::make_unique<Connection>(core, fd, peer)));
    } else if (errno == EAGAIN) {
      co_await listener->Readable();
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      co_await core->loop.SleepFor(kNoFdPause);
    }
  }
}

Task<> AwaitNone(std::shared_ptr<ServerCore> core) {
  while (core->count > 0) co_await core->drained.Wait();
}

class TcpServer final : public Server {
 public:
  TcpServer(std::shared_ptr<ServerCore> core, int fd)
      : core_(std::move(core)),
        listener_(std::make_shared<Listener>(core_->loop.reactor(), fd)),
        port_(LocalAddress(fd).port()) {
    core_->loop.Spawn(Accept(core_, listener_));
  }
  ~TcpServer() override {
    CloseListener();
    for (Connection& connection : core_->connections) connection.Cut();
  }

  uint16_t port() const override { return port_; }
  size_t connections() const override { return core_->count; }
  void Drain() override {
    core_->draining = true;
    for (Connection& connection : core_->connections) connection.CloseIfIdle();
  }
  void CloseListener() override {
    listener_->Close();
    core_->slot_free.Notify();
  }
  Task<> WaitDrained() override { return AwaitNone(core_); }

 private:
  std::shared_ptr<ServerCore> core_;
  std::shared_ptr<Listener> listener_;
  uint16_t port_;
};

}  // namespace

Status CheckPortFree(const Address& address) {
  HIDANE_TRY(const int fd, OpenListener(address, false));
  ::close(fd);
  return {};
}

Result<std::unique_ptr<Server>> Server::Listen(Loop& loop, const Address& address, Handler handler,
                                               ServerOptions options) {
  HIDANE_TRY(const int fd, OpenListener(address, true));
  return std::make_unique<TcpServer>(
      std::make_shared<ServerCore>(loop, std::move(handler), options), fd);
}

}  // namespace hidane::net
