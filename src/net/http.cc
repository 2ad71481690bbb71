#include "net/http.h"

#include <algorithm>

namespace hidane::net {
namespace {

constexpr size_t kUsualBytes = 512;
constexpr size_t kUsualFields = 16;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

}  // namespace

bool EqualsNoCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

void Headers::Add(std::string_view name, std::string_view value) {
  if (fields_.capacity() == 0) {  // one allocation each serves most heads
    bytes_.reserve(kUsualBytes);
    fields_.reserve(kUsualFields);
  }
  Field field{};
  field.name = static_cast<uint32_t>(bytes_.size());
  field.name_size = static_cast<uint32_t>(name.size());
  bytes_ += name;
  field.value = static_cast<uint32_t>(bytes_.size());
  field.value_size = static_cast<uint32_t>(value.size());
  bytes_ += value;
  const auto breaks = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  std::replace_if(bytes_.begin() + field.value, bytes_.end(), breaks, ' ');
  fields_.push_back(field);
}

void Headers::Set(std::string_view name, std::string_view value) {
  const std::string kept_name(name), kept_value(value);  // they may point into bytes_
  Remove(kept_name);
  Add(kept_name, kept_value);
}

void Headers::Remove(std::string_view name) {
  size_t kept = 0;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!EqualsNoCase((*this)[i].name, name)) fields_[kept++] = fields_[i];
  }
  fields_.resize(kept);
}

std::optional<std::string_view> Headers::Get(std::string_view name) const {
  for (const Header h : *this) {
    if (EqualsNoCase(h.name, name)) return h.value;
  }
  return std::nullopt;
}

size_t Headers::Count(std::string_view name) const {
  size_t n = 0;
  for (const Header h : *this) n += EqualsNoCase(h.name, name) ? 1 : 0;
  return n;
}

void Headers::Clear() {
  bytes_.clear();
  fields_.clear();
}

std::string_view RequestHead::query() const {
  const size_t mark = target.find('?');
  return mark == std::string::npos ? std::string_view{} : std::string_view(target).substr(mark + 1);
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 508:
      return "Loop Detected";
    default:
      return "";
  }
}

}  // namespace hidane::net
