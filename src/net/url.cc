#include "net/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace hidane::net {
namespace {

bool IsHostChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

bool IsBaseChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

/// `digits` as 1..65535, or 0.
uint16_t ParsePort(std::string_view digits) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() ? port : 0;
}

bool GoodBase(std::string_view base) {
  if (base.empty()) return true;
  if (!std::all_of(base.begin(), base.end(), IsBaseChar)) return false;
  for (const std::string_view bad : {"//", "/./", "/../"}) {
    if (base.find(bad) != std::string_view::npos) return false;
  }
  return !base.ends_with("/.") && !base.ends_with("/..");
}

}  // namespace

std::string Url::Authority() const {
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

Result<Url> ParseUrl(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, fmt::format("bad URL \"{}\": {}", text, why));
  };
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme)) return bad("must start with http://");
  std::string_view rest = text.substr(kScheme.size());
  const size_t slash = rest.find('/');
  Url url;
  if (slash != std::string_view::npos) url.base = rest.substr(slash);
  rest = rest.substr(0, slash);
  while (url.base.ends_with('/')) url.base.pop_back();
  if (!GoodBase(url.base)) return bad("the path may hold letters, digits and -._~/ only");

  std::string_view host = rest, port;
  if (rest.starts_with('[')) {
    const size_t close = rest.find(']');
    if (close == std::string_view::npos) return bad("no ] after an IPv6 address");
    host = rest.substr(1, close - 1);
    port = rest.substr(close + 1);
    const auto v6 = [](char c) { return IsHostChar(c) || c == ':'; };
    if (host.empty() || !std::all_of(host.begin(), host.end(), v6)) return bad("bad IPv6 address");
  } else {
    host = rest.substr(0, rest.find(':'));
    port = rest.substr(host.size());
  }
  url.host = host;
  for (char& c : url.host) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  const bool v6 = rest.starts_with('[');
  if (!v6 && (url.host.empty() || !std::all_of(url.host.begin(), url.host.end(), IsHostChar))) {
    return bad("the host may hold letters, digits and -._ only");
  }
  if (port.empty()) return url;
  url.port = port.starts_with(':') ? ParsePort(port.substr(1)) : 0;
  if (url.port == 0) return bad("the port must be 1 to 65535");
  return url;
}

}  // namespace hidane::net
