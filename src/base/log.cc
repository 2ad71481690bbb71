#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <string>

#include "base/json_out.h"

#include <fmt/format.h>

namespace hidane::log {
namespace {

std::atomic<Level> g_level{Level::kInfo};
constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};

std::string Timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     ms.count() % 1000);
}

struct ValueWriter {
  JsonWriter& w;
  void operator()(std::string_view v) const { w.String(v.substr(0, 1024)); }
  void operator()(int64_t v) const { w.Number(v); }
  void operator()(double v) const { w.Number(v); }
  void operator()(bool v) const { w.Bool(v); }
};

}  // namespace

void SetLevel(Level level) {
  g_level.store(level, std::memory_order_relaxed);
}
bool Enabled(Level level) {
  return level >= g_level.load(std::memory_order_relaxed);
}

void Write(Level level, std::string_view event, Fields fields) {
  if (!Enabled(level)) return;
  JsonWriter w;
  w.BeginObject().Field("ts", Timestamp());
  w.Field("level", kNames[static_cast<size_t>(level)]).Field("event", event);
  for (const Field& f : fields) {
    w.Key(f.name);
    std::visit(ValueWriter{w}, f.value);
  }
  w.EndObject();
  const std::string line = w.Take() + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace hidane::log
