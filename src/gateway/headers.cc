#include "gateway/headers.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace hidane::gateway {
namespace {

bool OneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view n) { return net::EqualsNoCase(name, n); });
}

bool StartsWith(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() && net::EqualsNoCase(name.substr(0, prefix.size()), prefix);
}

bool ForEngine(std::string_view name) {
  if (name.find('_') != std::string_view::npos) return false;
  switch (name.empty() ? 0 : name[0] | 0x20) {
    case 'a':
      return !OneOf(name, {"authorization", "api-key"});
    case 'c':
      return !OneOf(name, {"cookie"});
    case 'f':
      return !OneOf(name, {"forwarded"});
    case 'p':
      return !StartsWith(name, "proxy-");
    case 'x':
      return !StartsWith(name, "x-forwarded-") && !StartsWith(name, "x-hidane-") &&
             !OneOf(name, {"x-api-key", "x-real-ip", "x-request-id"});
    default:
      return true;
  }
}

bool ForClient(std::string_view name) {
  switch (name.empty() ? 0 : name[0] | 0x20) {
    case 's':
      return !OneOf(name, {"server", "set-cookie"});
    case 'v':
      return !OneOf(name, {"via"});
    case 'x':
      return !StartsWith(name, "x-hidane-") && !OneOf(name, {"x-powered-by", "x-request-id"});
    default:
      return true;
  }
}

}  // namespace

net::Headers HeadersForEngine(const net::Headers& from_client, std::string_view engine_key,
                              std::string_view request_id, bool plain) {
  net::Headers out;
  for (const net::Header field : from_client) {
    if (!ForEngine(field.name)) continue;
    if (plain && net::EqualsNoCase(field.name, "accept-encoding")) continue;
    out.Add(field.name, field.value);
  }
  out.Add("x-request-id", request_id);
  if (!engine_key.empty()) out.Add("authorization", "Bearer " + std::string(engine_key));
  return out;
}

net::Headers HeadersForClient(const net::Headers& from_engine) {
  net::Headers out;
  for (const net::Header field : from_engine)
    if (ForClient(field.name)) out.Add(field.name, field.value);
  return out;
}

bool IsEventStream(const net::Headers& headers) {
  constexpr std::string_view kType = "text/event-stream";
  const auto type = headers.Get("content-type");
  return type && StartsWith(*type, kType) && !headers.Get("content-encoding");
}

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace hidane::gateway
