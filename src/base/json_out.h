#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace hidane {

/// Appends one JSON document to a string. Commas and escapes are its business; balance is the
/// caller's. Strings must be UTF-8; invalid bytes become U+FFFD, so the output always parses.
///
///   JsonWriter w;
///   w.BeginObject().Key("id").String("cmpl-1").Key("n").Number(3).EndObject();
///   Send(w.Take());
class JsonWriter {
 public:
  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Raw(std::string_view json);  ///< a complete JSON value, copied as it is
  /// NaN and infinities, which JSON lacks, become null.
  JsonWriter& Number(double value);
  template <std::integral T>
  JsonWriter& Number(T value) {
    return std::is_signed_v<T> ? Signed(static_cast<int64_t>(value))
                               : Unsigned(static_cast<uint64_t>(value));
  }

  // Key and value in one.
  JsonWriter& Field(std::string_view key, std::string_view value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, const char* value) { return Key(key).String(value); }
  JsonWriter& Field(std::string_view key, bool value) { return Key(key).Bool(value); }
  template <class T>
    requires(std::integral<T> || std::floating_point<T>) && (!std::same_as<T, bool>)
  JsonWriter& Field(std::string_view key, T value) {
    return Key(key).Number(value);
  }

  const std::string& str() const { return out_; }
  std::string Take();  ///< the document; the writer starts anew

 private:
  JsonWriter& Signed(int64_t value);
  JsonWriter& Unsigned(uint64_t value);
  void Separate();

  std::string out_;
  bool need_comma_ = false;
};

/// Appends `text` to `out` as a JSON string, with quotes.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace hidane
