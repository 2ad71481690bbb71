#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hidane::net {

/// One server-sent event. Views hold until the splitter is touched again.
struct SseEvent {
  std::string_view type;  ///< of the `event:` field, empty if none
  std::string_view data;  ///< the `data:` lines joined by LF
  std::string_view raw;   ///< the bytes as sent, to and with the blank line
};

/// Splits a byte stream into server-sent events, whatever pieces the bytes come in (WHATWG HTML,
/// section 9.2.6: LF, CR and CRLF end a line, a leading BOM is dropped). No I/O. An event in one
/// piece is parsed where it lies, without a copy. The raw bytes of all events are the stream.
///
///     splitter.Feed(bytes);
///     while (auto event = splitter.Next()) ...
///     if (!splitter.status()) ...                    // an event over the limit
class SseSplitter {
 public:
  explicit SseSplitter(size_t event_bytes_max = 17 << 20) : event_bytes_max_(event_bytes_max) {}

  /// REQUIRES: Next has returned nothing, or this is the first call. `bytes` must live until then.
  void Feed(std::string_view bytes);
  /// The next whole event, also one without data (a comment); nothing when more bytes are needed.
  std::optional<SseEvent> Next();
  /// kTooLarge once an event has passed the limit; then Next gives no more.
  const Status& status() const { return status_; }
  /// Bytes of an event that has begun and not ended: an end of the stream now loses them.
  std::string_view pending() const { return held_; }

 private:
  enum class At : uint8_t { kLineStart, kInLine, kAfterCr, kBlankCr };

  size_t FindEnd();  // of the event at hand in in_; npos if it is not all there
  std::optional<SseEvent> Parse(std::string_view raw);

  size_t event_bytes_max_;
  At at_ = At::kLineStart;
  bool first_ = true;    // only the stream's begin may hold a byte order mark
  std::string_view in_;  // fed, not yet given out
  std::string held_;     // the begin of an event that came in an earlier piece
  std::string out_;      // a held event that is given out
  std::string joined_;   // data of an event with several data lines
  Status status_;
};

/// Appends `data: ...\n\n`, one data line for each line of `data`. With a `type` an event field.
void AppendSse(std::string& out, std::string_view data, std::string_view type = {});

}  // namespace hidane::net
