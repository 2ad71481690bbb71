#include "net/http1.h"
#include "net/http1_chars.h"

namespace hidane::net {
namespace {

bool IsUnreserved(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

/// The byte that `%xx` at `at` stands for, or -1.
int Decoded(std::string_view s, size_t at) {
  if (at + 2 >= s.size()) return -1;
  const int high = HexDigit(s[at + 1]), low = HexDigit(s[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// Unreserved bytes decoded once (RFC 3986, 6.2.2.2). Nothing for an escape that is broken, or
/// hides a slash, a backslash, a percent sign (a second decoding would see more) or a control.
std::optional<std::string> DecodeUnreserved(std::string_view path) {
  std::string out;
  out.reserve(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      out += path[i];
      continue;
    }
    const int byte = Decoded(path, i);
    if (byte < ' ' || byte == 0x7f || byte == '/' || byte == '\\' || byte == '%') {
      return std::nullopt;
    }
    if (IsUnreserved(static_cast<char>(byte))) {
      out += static_cast<char>(byte);
    } else {
      out.append(path.substr(i, 3));
    }
    i += 2;
  }
  return out;
}

bool HasDotSegment(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(segment.size());
  }
  return false;
}

bool GoodQuery(std::string_view query) {
  for (const char c : query) {
    if (!Is(c, kPathChar) && c != '?' && c != ';') return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> NormalTarget(std::string_view raw) {
  const size_t mark = raw.find('?');
  const std::string_view path = raw.substr(0, mark);
  if (!path.starts_with('/') || !All(path, kPathChar)) return std::nullopt;
  auto out = DecodeUnreserved(path);
  if (!out || out->find("//") != std::string::npos || HasDotSegment(*out)) return std::nullopt;
  if (mark == std::string_view::npos) return out;
  if (!GoodQuery(raw.substr(mark + 1))) return std::nullopt;
  out->append(raw.substr(mark));
  return out;
}

}  // namespace hidane::net
