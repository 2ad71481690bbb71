#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hidane::net {

/// A resolved IPv4 or IPv6 address with its port. A value.
class Address {
 public:
  Address() = default;
  std::string ToString() const;  ///< `127.0.0.1:8080`, `[::1]:8080`
  std::string Host() const;      ///< without the port
  uint16_t port() const;         ///< host byte order
  void set_port(uint16_t port);
  bool loopback() const;
  bool operator==(const Address&) const = default;

  const void* raw() const { return bytes_.data(); }  ///< a sockaddr; for this room only
  void* raw() { return bytes_.data(); }
  uint32_t raw_size() const;

 private:
  alignas(8) std::array<std::byte, 32> bytes_{};
};

/// Addresses of `host`, IPv4 first: numeric, `localhost`, or by the system's resolver.
/// Blocks: call it at start, not on a loop. kInvalidArgument names a host that can't be resolved.
Result<std::vector<Address>> Resolve(std::string_view host, uint16_t port);

/// `host:port`, `[v6]:port` or `:port` (every interface). Port 0 is allowed.
Result<Address> ParseListen(std::string_view text);

}  // namespace hidane::net
