#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hidane::net {

/// One field line. Views into the Headers that it came from.
struct Header {
  std::string_view name, value;
};

/// Field lines in the order sent; names compare without case. All bytes lie in one string: a
/// parsed head of 20 fields costs no allocation once the object is warm. Any change invalidates
/// the views that it has given out.
///
/// Fields that frame a message or belong to one connection (Content-Length, Transfer-Encoding,
/// Connection and what it names, Keep-Alive, Proxy-Connection, TE, Trailer, Upgrade, Expect) are
/// never in here on arrival and are left out on departure: copying a set from one connection to
/// another is always safe. Framing follows from `body_size` alone.
class Headers {
 public:
  /// CR, LF and NUL in `value` become spaces. REQUIRES: `name` is an RFC 9110 token.
  void Add(std::string_view name, std::string_view value);
  void Set(std::string_view name, std::string_view value);  ///< replaces every field of that name
  void Remove(std::string_view name);
  std::optional<std::string_view> Get(std::string_view name) const;  ///< the first one's value
  size_t Count(std::string_view name) const;
  void Clear();

  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }
  Header operator[](size_t i) const {
    const Field& f = fields_[i];
    return {std::string_view(bytes_).substr(f.name, f.name_size),
            std::string_view(bytes_).substr(f.value, f.value_size)};
  }

  struct Iterator {
    const Headers* headers;
    size_t i;
    Header operator*() const { return (*headers)[i]; }
    Iterator& operator++() { return ++i, *this; }
    bool operator==(const Iterator&) const = default;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  struct Field {
    uint32_t name, name_size, value, value_size;
  };
  std::string bytes_;
  std::vector<Field> fields_;
};

/// ASCII comparison without case.
bool EqualsNoCase(std::string_view a, std::string_view b);

struct RequestHead {
  std::string method;  ///< a token, case as sent
  /// Origin-form in normal form: starts with `/`, no `//`, no `.` or `..` segment, no control
  /// byte, no fragment, no encoded unreserved byte or slash; `?query` as sent. `*` for OPTIONS.
  std::string target;
  std::string authority;  ///< Host, as sent
  Headers headers;        ///< without Host and what frames
  /// Of the body: bytes, 0 without one, nothing when only its end will tell.
  std::optional<uint64_t> body_size = 0;

  std::string_view path() const { return std::string_view(target).substr(0, target.find('?')); }
  std::string_view query() const;  ///< behind the `?`, empty if none
};

struct ResponseHead {
  int status = 200;
  Headers headers;
  /// Of the body: bytes, or nothing when only its end will tell.
  std::optional<uint64_t> body_size;
};

/// "OK", "Not Found", ...; "" for an unknown status.
std::string_view ReasonPhrase(int status);

struct HeadLimits {
  uint32_t head_bytes_max = 64 << 10;  ///< start line and fields; more is 431
  uint32_t headers_max = 100;          ///< more is 431
};

}  // namespace hidane::net
