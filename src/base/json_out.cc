#include "base/json_out.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace hidane {
namespace {

constexpr char kHex[] = "0123456789abcdef";

// Length of the valid UTF-8 sequence at `p`, 0 if it is invalid (RFC 3629).
size_t Utf8Length(const unsigned char* p, size_t left) {
  const auto tail = [&](size_t i) { return i < left && (p[i] & 0xc0) == 0x80; };
  if (p[0] < 0x80) return 1;
  if (p[0] >= 0xc2 && p[0] <= 0xdf) return tail(1) ? 2 : 0;
  if ((p[0] & 0xf0) == 0xe0) {
    if (!tail(1) || !tail(2)) return 0;
    if (p[0] == 0xe0 && p[1] < 0xa0) return 0;   // overlong
    if (p[0] == 0xed && p[1] >= 0xa0) return 0;  // surrogate
    return 3;
  }
  if (p[0] >= 0xf0 && p[0] <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (p[0] == 0xf0 && p[1] < 0x90) return 0;
    if (p[0] == 0xf4 && p[1] >= 0x90) return 0;
    return 4;
  }
  return 0;
}

void AppendEscaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
  }
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  size_t start = 0;  // of the run that is copied as it is
  size_t i = 0;
  const auto flush = [&] { out.append(text, start, i - start); };
  while (i < text.size()) {
    if (p[i] < 0x20 || p[i] == '"' || p[i] == '\\') {
      flush();
      AppendEscaped(out, p[i]);
      start = ++i;
    } else if (const size_t n = Utf8Length(p + i, text.size() - i); n > 0) {
      i += n;
    } else {
      flush();
      out += "\xef\xbf\xbd";
      start = ++i;
    }
  }
  flush();
  out += '"';
}

void JsonWriter::Separate() {
  if (need_comma_) out_ += ',';
  need_comma_ = true;
}
JsonWriter& JsonWriter::BeginObject() {
  Separate();
  out_ += '{';
  need_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::EndObject() {
  out_ += '}';
  need_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::BeginArray() {
  Separate();
  out_ += '[';
  need_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::EndArray() {
  out_ += ']';
  need_comma_ = true;
  return *this;
}
JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  AppendJsonString(out_, key);
  out_ += ':';
  need_comma_ = false;
  return *this;
}
JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  AppendJsonString(out_, value);
  return *this;
}
JsonWriter& JsonWriter::Bool(bool value) {
  return Raw(value ? "true" : "false");
}
JsonWriter& JsonWriter::Null() {
  return Raw("null");
}
JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_ += json;
  return *this;
}
JsonWriter& JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  char buf[32];
  const auto end = std::to_chars(buf, buf + sizeof buf, value).ptr;
  return Raw({buf, static_cast<size_t>(end - buf)});
}
JsonWriter& JsonWriter::Signed(int64_t value) {
  char buf[24];
  const auto end = std::to_chars(buf, buf + sizeof buf, value).ptr;
  return Raw({buf, static_cast<size_t>(end - buf)});
}
JsonWriter& JsonWriter::Unsigned(uint64_t value) {
  char buf[24];
  const auto end = std::to_chars(buf, buf + sizeof buf, value).ptr;
  return Raw({buf, static_cast<size_t>(end - buf)});
}
std::string JsonWriter::Take() {
  need_comma_ = false;
  return std::exchange(out_, {});
}

}  // namespace hidane
