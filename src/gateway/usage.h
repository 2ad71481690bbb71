#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hidane::gateway {

/// What an engine says a request cost. A count it didn't give is -1.
struct Usage {
  int64_t prompt_tokens = -1;
  int64_t cached_tokens = -1;  ///< prompt_tokens_details.cached_tokens
  int64_t completion_tokens = -1;
  friend bool operator==(const Usage&, const Usage&) = default;
};

/// Watches the bytes of one SSE answer for usage and, if told so, takes out the event that holds
/// nothing but usage (`"choices":[]`): the client did not ask for it, the gateway did. Every other
/// byte comes out as it went in, in order; how the bytes are split into chunks changes nothing.
/// Events come out whole, so that a stream that breaks off leaves no half of one behind.
/// Only events that mention "usage" are parsed. One per answer; not thread-safe.
class UsageFilter {
 public:
  /// At most `held_bytes_max` of an unfinished event are held back; a longer one passes as it
  /// comes, unread (a usage event is some hundred bytes).
  UsageFilter(bool remove, size_t held_bytes_max) : remove_(remove), held_max_(held_bytes_max) {}

  /// What to send on now. Valid until the next call and while `chunk` is.
  std::string_view Feed(std::string_view chunk);
  /// Call at the end of the stream: what is still held. An unfinished event is sent on.
  std::string_view Finish();

  const std::optional<Usage>& usage() const { return usage_; }
  bool holds() const { return !held_.empty(); }  ///< Finish has something to send
  bool mid_event() const { return unread_; }     ///< part of an unfinished event has gone out

 private:
  class Pass;
  bool Keep(std::string_view event);  ///< false for an event that is nothing but usage
  size_t EndOfEvent(std::string_view chunk, size_t at);
  std::string_view Hold(std::string_view chunk, size_t event, Pass& pass);

  bool remove_;
  size_t held_max_;
  std::string held_;        // an unfinished event
  std::string out_;         // what Feed returns when that is no part of the chunk
  bool unread_ = false;     // the current event is longer than held_max_
  bool line_empty_ = true;  // no byte yet on the current line
  bool skip_lf_ = false;    // the last byte was a CR: an LF now belongs to it
  bool last_kept_ = true;   // what became of the event before
  std::optional<Usage> usage_;
};

/// Keeps the end of a JSON answer, where engines put usage. One per answer.
class UsageTail {
 public:
  void Feed(std::string_view chunk);
  std::optional<Usage> Finish() const;

 private:
  std::string tail_;
};

}  // namespace hidane::gateway
