#pragma once
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

/// Events with fields, one JSON line each on stderr:
///   {"ts":"2026-11-29T12:00:00.123Z","level":"warn","event":"endpoint.ejected","endpoint":3}
/// Event names are `noun.verb_past`; values carry their unit in the name. Prompt text never.
/// Thread-safe; a line is one write.
namespace hidane::log {

enum class Level : uint8_t { kDebug, kInfo, kWarn, kError, kOff };

struct Field {
  std::string_view name;
  std::variant<std::string_view, int64_t, double, bool> value;
  Field(std::string_view n, std::string_view v) : name(n), value(v) {}
  Field(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  Field(std::string_view n, bool v) : name(n), value(v) {}
  Field(std::string_view n, double v) : name(n), value(v) {}
  template <class T>
    requires std::is_integral_v<T>
  Field(std::string_view n, T v) : name(n), value(static_cast<int64_t>(v)) {}
};
using Fields = std::initializer_list<Field>;

void SetLevel(Level level);  ///< default kInfo; process-wide
bool Enabled(Level level);
void Write(Level level, std::string_view event, Fields fields = {});

inline void Debug(std::string_view event, Fields f = {}) {
  Write(Level::kDebug, event, f);
}
inline void Info(std::string_view event, Fields f = {}) {
  Write(Level::kInfo, event, f);
}
inline void Warn(std::string_view event, Fields f = {}) {
  Write(Level::kWarn, event, f);
}
inline void Error(std::string_view event, Fields f = {}) {
  Write(Level::kError, event, f);
}

}  // namespace hidane::log
