#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "net/client.h"
#include "net/tcp.h"

namespace hidane::net {

/// A connection to an upstream, in use or idle.
struct Upstream {
  Upstream(Reactor& reactor, int fd, const Address& to)
      : stream(reactor, fd, /*connecting=*/true), address(to) {}
  TcpStream stream;
  const Address address;
  TimePoint idle_since{};
};

/// What a ClientPool shares with its streams.
struct PoolCore {
  PoolCore(Loop& l, const ClientOptions& o) : loop(l), options(o), sweep(l, [this] { Sweep(); }) {}

  /// An idle connection that has shown no sign of an end, the most recently used first; or none.
  std::unique_ptr<Upstream> Take(const Address& address);
  void Give(std::unique_ptr<Upstream> upstream);
  void CloseIdle();

  Loop& loop;
  const ClientOptions options;
  size_t idle_count = 0;
  SpareBuffers spare{4 << 20};

 private:
  struct Hash {
    size_t operator()(const Address& a) const { return Xxh3(a.raw(), a.raw_size()); }
  };
  void Drop(const Upstream* upstream);
  void Sweep();

  std::unordered_map<Address, std::vector<std::unique_ptr<Upstream>>, Hash> idle_;
  Deadline sweep;  // armed while something is idle
};

}  // namespace hidane::net
