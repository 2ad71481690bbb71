#include "net/http1.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "net/http1_chars.h"

namespace hidane::net {
namespace {

constexpr HttpError Bad(std::string_view rule) {
  return {400, rule};
}

/// What the field lines say about framing, gathered while they are read.
struct Gathered {
  std::optional<std::string_view> length, coding, host, expect;
  std::string_view connection[8];
  size_t connections = 0;
  bool close = false, keep_alive = false;
};

std::string_view TrimOws(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

/// Calls `fn` for each element of a comma list.
template <class Fn>
void ForEachElement(std::string_view list, Fn fn) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    const std::string_view element = TrimOws(list.substr(0, comma));
    if (!element.empty()) fn(element);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}

HttpError TakeOnce(std::optional<std::string_view>& slot, std::string_view value,
                   std::string_view rule) {
  if (slot) return Bad(rule);
  slot = value;
  return {};
}

/// One field: into `headers`, or into `g` when it frames.
HttpError TakeField(std::string_view name, std::string_view value, Headers& headers, Gathered& g) {
  switch (name.size()) {  // few fields get past this
    case 4:
      if (EqualsNoCase(name, "host")) return TakeOnce(g.host, value, "more than one Host");
      break;
    case 6:
      if (EqualsNoCase(name, "expect")) return TakeOnce(g.expect, value, "more than one Expect");
      break;
    case 10:
      if (!EqualsNoCase(name, "connection")) break;
      if (g.connections == std::size(g.connection)) return Bad("too many Connection fields");
      g.connection[g.connections++] = value;
      return {};
    case 14:
      if (!EqualsNoCase(name, "content-length")) break;
      return TakeOnce(g.length, value, "more than one Content-Length");
    case 17:
      if (!EqualsNoCase(name, "transfer-encoding")) break;
      return TakeOnce(g.coding, value, "more than one Transfer-Encoding");
    default:
      break;
  }
  // A name with `_` may collide with one with `-` behind us (CGI, WSGI): it never goes on.
  if (IsHopByHop(name) || name.find('_') != std::string_view::npos) return {};
  headers.Add(name, value);
  return {};
}

HttpError ParseFields(std::string_view fields, const HeadLimits& limits, Headers& headers,
                      Gathered& g) {
  uint32_t count = 0;
  while (fields.size() > 2) {  // the blank line is left
    const size_t end = fields.find('\r');
    const std::string_view line = fields.substr(0, end);
    if (fields.substr(end, 2) != "\r\n") return Bad("CR inside a field line");
    fields.remove_prefix(end + 2);
    if (++count > limits.headers_max) return {431, "too many fields"};
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Bad("field line without colon");
    const std::string_view name = line.substr(0, colon);
    if (name.empty() || !All(name, kTokenChar)) return Bad("field name is no token");
    const std::string_view raw = line.substr(colon + 1);
    if (!All(raw, kValueChar)) return Bad("control byte in a field value");
    std::string_view value = TrimOws(raw);
    // White space behind a length is legal, and has been read as part of it.
    if (EqualsNoCase(name, "content-length") && !raw.ends_with(value)) value = raw;
    if (HttpError e = TakeField(name, value, headers, g)) return e;
  }
  bool tokens = true;
  for (size_t i = 0; i < g.connections; ++i) {
    ForEachElement(g.connection[i], [&](std::string_view element) {
      tokens &= All(element, kTokenChar);
      if (EqualsNoCase(element, "close")) {
        g.close = true;
      } else if (EqualsNoCase(element, "keep-alive")) {
        g.keep_alive = true;
      } else {
        headers.Remove(element);
      }
    });
  }
  if (!tokens) return Bad("Connection is no list of tokens");
  return {};
}

HttpError ParseLength(std::string_view text, uint64_t& length) {
  if (text.empty() || text.size() > 18) return Bad("Content-Length is no number that fits");
  length = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return Bad("Content-Length is no number");
    length = length * 10 + static_cast<uint64_t>(c - '0');
  }
  return {};
}

/// The framing that both kinds of message share; kNone if neither field is there.
HttpError ParseFraming(const Gathered& g, bool http_1_0, Framing& framing, uint64_t& length) {
  framing = Framing::kNone;
  length = 0;
  if (g.coding) {
    if (g.length) return Bad("Content-Length together with Transfer-Encoding");
    if (http_1_0) return Bad("Transfer-Encoding in HTTP/1.0");
    if (EqualsNoCase(*g.coding, "chunked")) {
      framing = Framing::kChunked;
      return {};
    }
    const bool list = g.coding->find(',') != std::string_view::npos;
    if (list || !All(*g.coding, kTokenChar)) return Bad("Transfer-Encoding other than chunked");
    return {501, "unknown transfer coding"};
  }
  if (!g.length) return {};
  if (HttpError e = ParseLength(*g.length, length)) return e;
  framing = Framing::kLength;
  return {};
}

/// "HTTP/1.1" or "HTTP/1.0".
HttpError ParseVersion(std::string_view text, bool& http_1_0) {
  http_1_0 = text == "HTTP/1.0";
  if (http_1_0 || text == "HTTP/1.1") return {};
  if (text.size() == 8 && text.starts_with("HTTP/") && text[6] == '.') {
    return {505, "HTTP version other than 1.0 and 1.1"};
  }
  return Bad("no HTTP version");
}

/// Target and authority out of the request line's middle part.
HttpError ParseTarget(std::string_view raw, std::string_view method, RequestHead& out) {
  if (raw.size() > 16 << 10) return {414, "target over 16 KiB"};
  if (raw == "*" && method == "OPTIONS") {
    out.target = raw;
    return {};
  }
  if (method == "CONNECT") return {501, "CONNECT"};
  constexpr std::string_view kScheme = "http://";
  if (raw.size() > kScheme.size() && EqualsNoCase(raw.substr(0, kScheme.size()), kScheme)) {
    raw.remove_prefix(kScheme.size());
    const std::string_view authority = raw.substr(0, raw.find_first_of("/?"));
    if (authority.empty() || !All(authority, kHostChar)) return Bad("bad authority in the target");
    out.authority = authority;
    raw.remove_prefix(authority.size());
    if (raw.empty()) raw = "/";
  }
  auto normal = NormalTarget(raw);
  if (!normal) return Bad("target not in normal form");
  out.target = std::move(*normal);
  return {};
}

}  // namespace

std::optional<size_t> HeadScanner::Scan(std::string_view in, const HeadLimits& limits,
                                        HttpError& error) {
  for (;;) {
    const size_t lf = in.find('\n', seen_);
    if (lf == std::string_view::npos) break;
    seen_ = lf + 1;
    if (lf == line_ || in[lf - 1] != '\r') {
      error = Bad("line end without CR");
      return std::nullopt;
    }
    const bool blank = lf - line_ == 1;
    line_ = seen_;
    if (!blank) continue;
    if (seen_ == 2) {
      error = Bad("empty start line");
      return std::nullopt;
    }
    if (seen_ > limits.head_bytes_max) break;
    return seen_;
  }
  seen_ = std::max(seen_, in.size());
  if (seen_ > limits.head_bytes_max) error = {431, "head too large"};
  return std::nullopt;
}

HttpError ParseRequestHead(std::string_view head, const HeadLimits& limits, RequestHead& out,
                           RequestMeta& meta) {
  out.headers.Clear();
  out.authority.clear();
  meta = {};
  const size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || last == first)
    return Bad("request line is not three parts");
  const std::string_view method = line.substr(0, first);
  if (method.empty() || method.size() > 32 || !All(method, kTokenChar)) return Bad("bad method");
  out.method = method;
  if (HttpError e = ParseVersion(line.substr(last + 1), meta.http_1_0)) return e;
  Gathered g;
  if (HttpError e = ParseFields(head.substr(line_end + 2), limits, out.headers, g)) return e;
  if (!g.host && !meta.http_1_0) return Bad("no Host");
  if (g.host && !All(*g.host, kHostChar)) return Bad("bad Host");
  if (g.host) out.authority = *g.host;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (HttpError e = ParseTarget(target, method, out)) return e;

  uint64_t length = 0;
  if (HttpError e = ParseFraming(g, meta.http_1_0, meta.framing, length)) return e;
  if (length == 0 && meta.framing == Framing::kLength) meta.framing = Framing::kNone;
  out.body_size = length;
  if (meta.framing == Framing::kChunked) out.body_size.reset();
  // Nobody behind us unpacks a body, so nobody can be made to by a small one.
  const auto content = out.headers.Get("content-encoding");
  if (content && !EqualsNoCase(*content, "identity") && meta.framing != Framing::kNone) {
    return {415, "Content-Encoding of a request"};
  }
  meta.keep_alive = !g.close && (!meta.http_1_0 || g.keep_alive);
  if (g.expect && !meta.http_1_0) {
    if (!EqualsNoCase(*g.expect, "100-continue")) return {417, "unknown expectation"};
    meta.expect_continue = meta.framing != Framing::kNone;
  }
  return {};
}

HttpError ParseResponseHead(std::string_view head, const HeadLimits& limits,
                            std::string_view method, ResponseHead& out, ResponseMeta& meta) {
  out.headers.Clear();
  out.body_size.reset();
  const size_t line_end = head.find("\r\n");
  const std::string_view line = head.substr(0, line_end);
  bool http_1_0 = false;
  if (HttpError e = ParseVersion(line.substr(0, 8), http_1_0)) return e;
  if (line.size() < 13 || line[8] != ' ' || line[12] != ' ') return Bad("bad status line");
  out.status = 0;
  for (const char c : line.substr(9, 3)) {
    if (c < '0' || c > '9') return Bad("status is no number");
    out.status = out.status * 10 + (c - '0');
  }
  if (out.status < 100) return Bad("status under 100");
  if (!All(line.substr(13), kValueChar)) return Bad("control byte in the reason");
  Gathered g;
  if (HttpError e = ParseFields(head.substr(line_end + 2), limits, out.headers, g)) return e;
  uint64_t length = 0;
  if (HttpError e = ParseFraming(g, http_1_0, meta.framing, length)) return e;
  meta.keep_alive = !g.close && (!http_1_0 || g.keep_alive);
  if (meta.framing == Framing::kLength) out.body_size = length;
  const bool informational = out.status < 200;
  if (informational || out.status == 204 || out.status == 304 || method == "HEAD") {
    // Such an answer ends with its head, whatever length it states.
    if (informational && meta.framing != Framing::kNone) return Bad("1xx with a body");
    meta.framing = Framing::kNone;
  } else if (meta.framing == Framing::kNone) {
    meta.framing = Framing::kUntilClose;
    meta.keep_alive = false;
  } else if (meta.framing == Framing::kLength && length == 0) {
    meta.framing = Framing::kNone;
  }
  return {};
}

bool IsHopByHop(std::string_view name) {
  switch (name.size()) {
    case 2:
      return EqualsNoCase(name, "te");
    case 4:
      return EqualsNoCase(name, "host");
    case 6:
      return EqualsNoCase(name, "expect");
    case 7:
      return EqualsNoCase(name, "trailer") || EqualsNoCase(name, "upgrade");
    case 10:
      return EqualsNoCase(name, "connection") || EqualsNoCase(name, "keep-alive");
    case 14:
      return EqualsNoCase(name, "content-length");
    case 16:
      return EqualsNoCase(name, "proxy-connection");
    case 17:
      return EqualsNoCase(name, "transfer-encoding");
    default:
      return false;
  }
}

namespace {

void AppendFields(std::string& out, const Headers& headers) {
  for (const Header h : headers) {
    if (IsHopByHop(h.name)) continue;
    out.append(h.name).append(": ").append(h.value).append("\r\n");
  }
}

void AppendFraming(std::string& out, const SendFraming& framing) {
  if (framing.framing == Framing::kLength) {
    fmt::format_to(std::back_inserter(out), FMT_COMPILE("content-length: {}\r\n"), framing.length);
  } else if (framing.framing == Framing::kChunked) {
    out += "transfer-encoding: chunked\r\n";
  }
  if (framing.close) out += "connection: close\r\n";
  out += "\r\n";
}

}  // namespace

void AppendRequestHead(std::string& out, const RequestHead& head, const SendFraming& framing) {
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\nhost: ");
  out.append(head.authority).append("\r\n");
  AppendFields(out, head.headers);
  AppendFraming(out, framing);
}

void AppendResponseHead(std::string& out, const ResponseHead& head, const SendFraming& framing,
                        std::string_view date) {
  fmt::format_to(std::back_inserter(out), FMT_COMPILE("HTTP/1.1 {} {}\r\n"), head.status,
                 ReasonPhrase(head.status));
  AppendFields(out, head.headers);
  if (!date.empty() && !head.headers.Get("date")) {
    out.append("date: ").append(date).append("\r\n");
  }
  AppendFraming(out, framing);
}

}  // namespace hidane::net
