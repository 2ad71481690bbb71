#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace hidane::load {

/// How a request ended, as a closed set; errors are counted by it and never hidden.
enum class End : uint8_t {
  kOk,
  kConnect,  ///< no connection, or it broke before an answer began
  kTimeout,  ///< longer than the limit
  kHttp429,  ///< refused for load
  kHttp4xx,  ///< refused for another reason
  kHttp5xx,
  kErrorEvent,  ///< the stream carried an error event
  kCut,         ///< the stream ended without [DONE]
  kProtocol,    ///< an answer that is not OpenAI's
  kNotSent,     ///< too many requests were in flight: the generator itself was the limit
};
inline constexpr size_t kEnds = 10;
std::string_view Name(End end);  ///< "ok", "connect", "http_429", ...

/// What became of one request. Times since the start of the run.
struct Outcome {
  uint32_t tenant = 0;
  Duration intended{0}, sent{0};
  Duration first{0}, last{0};  ///< first and last non-empty piece of text; 0 = none
  Duration done{0};
  uint32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  bool usage_seen = false;
  End end = End::kOk;
  std::string worker;  ///< x-hidane-worker, empty without a gateway of ours
  std::string detail;  ///< of an error: the first words of what was said

  bool ok() const { return end == End::kOk; }
};

/// Reads a streamed chat answer, event by event, into an Outcome. Pure: time comes in.
class AnswerReader {
 public:
  explicit AnswerReader(Outcome& outcome) : outcome_(outcome) {}  ///< which must outlive it
  /// One SSE event's data. Keep-alives and comments never come here.
  void OnEvent(std::string_view data, Duration now);
  /// The stream is over; decides `outcome.end` unless an event already has.
  void OnEnd(Duration now);
  bool done() const { return done_; }

 private:
  Outcome& outcome_;
  bool done_ = false, failed_ = false;
};

/// The End of an answer whose status is not 200.
End EndOfStatus(int http_status);

}  // namespace hidane::load
