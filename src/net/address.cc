#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace hidane::net {
namespace {

static_assert(sizeof(sockaddr_in6) <= 32);

const sockaddr* Raw(const Address& a) {
  return static_cast<const sockaddr*>(a.raw());
}
const sockaddr_in* V4(const Address& a) {
  return static_cast<const sockaddr_in*>(a.raw());
}
const sockaddr_in6* V6(const Address& a) {
  return static_cast<const sockaddr_in6*>(a.raw());
}

}  // namespace

uint32_t Address::raw_size() const {
  return Raw(*this)->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

uint16_t Address::port() const {
  return ntohs(V4(*this)->sin_port);
}  // same place in both

void Address::set_port(uint16_t port) {
  static_cast<sockaddr_in*>(raw())->sin_port = htons(port);
}

std::string Address::Host() const {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v6 = Raw(*this)->sa_family == AF_INET6;
  const void* bytes = v6 ? static_cast<const void*>(&V6(*this)->sin6_addr) : &V4(*this)->sin_addr;
  ::inet_ntop(v6 ? AF_INET6 : AF_INET, bytes, text, sizeof text);
  return text;
}

std::string Address::ToString() const {
  if (Raw(*this)->sa_family == AF_INET6) return fmt::format("[{}]:{}", Host(), port());
  return fmt::format("{}:{}", Host(), port());
}

bool Address::loopback() const {
  if (Raw(*this)->sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&V6(*this)->sin6_addr) != 0;
  return (ntohl(V4(*this)->sin_addr.s_addr) >> 24) == 127;
}

Result<std::vector<Address>> Resolve(std::string_view host, uint16_t port) {
  const std::string name(host);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int rc = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (rc != 0) {
    return Fail(Code::kInvalidArgument,
                fmt::format("can't resolve host \"{}\": {}", name, ::gai_strerror(rc)));
  }
  std::vector<Address> out;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(address.raw(), a->ai_addr, a->ai_addrlen);
    address.set_port(port);
    out.push_back(address);
  }
  ::freeaddrinfo(found);
  if (out.empty()) {
    return Fail(Code::kInvalidArgument, fmt::format("host \"{}\" has no address", name));
  }
  std::stable_partition(out.begin(), out.end(),
                        [](const Address& a) { return Raw(a)->sa_family == AF_INET; });
  return out;
}

Result<Address> ParseListen(std::string_view text) {
  const auto bad = [&] {
    return Fail(Code::kInvalidArgument, fmt::format("\"{}\" is not host:port", text));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return bad();
  if (host.empty() || host == "*") host = "0.0.0.0";
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad();
  }
  HIDANE_TRY(const auto all, Resolve(host, port));
  return all.front();
}

}  // namespace hidane::net
