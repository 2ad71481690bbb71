#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hidane::net {

/// `http://host[:port][/base]`: where an OpenAI-compatible server listens.
struct Url {
  std::string host;               ///< lower case; an IPv6 address without its brackets
  uint16_t port = 80;             ///< 1..65535
  std::string base;               ///< starts with `/` or is empty, never ends with `/`
  std::string Authority() const;  ///< `host:port` as a Host field says it
};

/// One parser for check and use (RFC 3986, a strict subset). kInvalidArgument, naming the text,
/// for another scheme, userinfo, a query or fragment, white space, control and non-ASCII bytes,
/// backslash, percent-encoding in the host, a port that is not 1..65535.
Result<Url> ParseUrl(std::string_view text);

}  // namespace hidane::net
