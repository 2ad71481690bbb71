// Comma-separated traces: Azure's (lengths without prefixes) and our own form.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <optional>
#include <string>

#include "base/hash.h"
#include "sim/trace_history.h"
#include "sim/trace_lines.h"

namespace hidane::sim {
namespace {

template <size_t N>
Result<std::array<std::string_view, N>> Split(std::string_view line) {
  std::array<std::string_view, N> fields;
  const std::string_view whole = line;
  for (size_t i = 0; i < N; ++i) {
    const size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == N)) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("`{}` does not have {} fields", whole.substr(0, 80), N));
    }
    fields[i] = line.substr(0, comma);
    if (i + 1 < N) line.remove_prefix(comma + 1);
  }
  return fields;
}

template <class T>
Result<T> Parse(std::string_view text, std::string_view field, T max) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > max) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} is `{}`, not in [0, {}]", field, text.substr(0, 40), max));
  }
  return value;
}

/// Days from 1970-01-01 in the Gregorian calendar, years from 1970 on.
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  // A year that begins in March has its leap day last; 306 days of it precede January.
  const int64_t y = month > 2 ? year : year - 1;
  const int64_t m = month > 2 ? month - 3 : month + 9;
  const int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
  constexpr int64_t kEpoch = 365 * 1969 + 1969 / 4 - 1969 / 100 + 1969 / 400 + 306;
  return days - kEpoch;
}

/// `2023-11-16 18:17:03.9799600` since 1970.
Result<Duration> ParseTimestamp(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd dd:dd:dd";
  bool fits = text.size() >= kShape.size();
  for (size_t i = 0; fits && i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    fits = kShape[i] == 'd' ? digit : text[i] == kShape[i];
  }
  double fraction = 0;
  if (fits && text.size() > kShape.size()) {
    const auto parsed = Parse<double>("0" + std::string(text.substr(kShape.size())), "", 1.0);
    fits = text[kShape.size()] == '.' && parsed;
    if (fits) fraction = *parsed;
  }
  const auto number = [&](size_t at, size_t digits) {
    int64_t value = 0;
    for (size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  if (!fits || number(0, 4) < 1970 || number(0, 4) > 2200 || number(5, 2) < 1 ||
      number(5, 2) > 12) {
    return Fail(Code::kInvalidArgument,
                fmt::format("TIMESTAMP is `{}`, not YYYY-MM-DD hh:mm:ss", text.substr(0, 40)));
  }
  const int64_t days = DaysFromCivil(number(0, 4), number(5, 2), number(8, 2));
  const int64_t seconds = number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2);
  return std::chrono::seconds(days * 86'400 + seconds) + FromSeconds(fraction);
}

class Azure final : public TraceLines {
 public:
  Azure() : TraceLines(TraceFormat::kAzure, 512) {}
  Status Read(std::string_view line) override {
    if (line.starts_with("TIMESTAMP")) return {};
    HIDANE_TRY(const auto fields, Split<3>(line));
    HIDANE_TRY(const Duration at, ParseTimestamp(fields[0]));
    HIDANE_TRY(const uint32_t input, Parse(fields[1], "ContextTokens", kTraceTokensMax));
    HIDANE_TRY(const uint32_t output, Parse(fields[2], "GeneratedTokens", kTraceTokensMax));
    if (!start_) start_ = at;
    if (at < *start_) {
      return Fail(Code::kInvalidArgument,
                  fmt::format("TIMESTAMP `{}` is before the first", fields[0]));
    }
    const uint32_t session = trace_.AddSession();
    HIDANE_CHECK_OK(trace_.AddTurn(session, {.at = at - *start_,
                                             .input_tokens = std::max(input, 1u),
                                             .output_tokens = std::max(output, 1u),
                                             .k2_end = 1}));
    trace_.AddRun(OwnIds(session, 0), std::max(input, 1u));
    return {};
  }

 private:
  std::optional<Duration> start_;
};

/// arrival_s,tenant,conversation,static_tokens,own_tokens,output_tokens
class Csv final : public TraceLines {
 public:
  Csv() : TraceLines(TraceFormat::kCsv, 64) {}
  Status Read(std::string_view line) override {
    if (line.starts_with("arrival_s")) return {};
    HIDANE_TRY(const auto fields, Split<6>(line));
    HIDANE_TRY(const double arrival, Parse(fields[0], "arrival_s", kTraceSecondsMax));
    HIDANE_TRY(const uint32_t fixed, Parse(fields[3], "static_tokens", kTraceTokensMax));
    HIDANE_TRY(const uint32_t own, Parse(fields[4], "own_tokens", kTraceTokensMax));
    HIDANE_TRY(const uint32_t output, Parse(fields[5], "output_tokens", kTraceTokensMax));
    if (fixed + own == 0) return Fail(Code::kInvalidArgument, "static_tokens and own_tokens are 0");
    const uint32_t tenant =
        tenants_.try_emplace(Xxh3(fields[1]), static_cast<uint32_t>(tenants_.size())).first->second;
    TraceTurn turn{.at = FromSeconds(arrival), .output_tokens = std::max(output, 1u)};
    turn.k1_end = trace_.Blocks(fixed);
    turn.k2_end = turn.k1_end + trace_.Blocks(own);
    const uint64_t text = OwnIds(Xxh3(fields[1]), fixed);
    if (fields[2].empty()) {
      TraceHistory single(trace_.AddSession(tenant));
      return Add(single, turn, text, fixed, own);
    }
    const uint64_t name = OwnIds(text, Xxh3(fields[2]));
    const auto [it, is_new] = conversations_.try_emplace(name, Known{TraceHistory(0), turn.k2_end});
    if (is_new) it->second.history = TraceHistory(trace_.AddSession(tenant));
    turn.k2_end = it->second.k2_end;
    return Add(it->second.history, turn, text, is_new ? fixed : 0, own);
  }

 private:
  struct Known {
    TraceHistory history;
    uint32_t k2_end;
  };

  Status Add(TraceHistory& history, const TraceTurn& turn, uint64_t text, uint32_t fixed,
             uint32_t own) {
    HIDANE_CHECK_OK(history.Begin(trace_, turn, {fixed, own}));
    trace_.AddRun(text, fixed);
    trace_.AddRun(OwnIds(history.session(), history.turns()), own);
    return {};
  }

  boost::unordered_flat_map<uint64_t, uint32_t> tenants_;
  boost::unordered_flat_map<uint64_t, Known> conversations_;
};

}  // namespace

std::unique_ptr<TraceLines> AzureLines() {
  return std::make_unique<Azure>();
}

std::unique_ptr<TraceLines> CsvLines() {
  return std::make_unique<Csv>();
}

}  // namespace hidane::sim
