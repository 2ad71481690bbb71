#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/http.h"

namespace hidane::net {

/// HTTP/1.1 without I/O (RFC 9112), stricter than the RFC where two readers could disagree about
/// where a message ends. Own code and not Beast's parser: that one takes obs-fold, `CL: 5, 5` and
/// TE lists, has no limit on fields, and would need its own copy of each field. It is the oracle
/// of fuzz/http1_fuzz.cc: what passes here, passes there.

/// What is wrong with a message: the status to answer with (for a response: 502) and the rule.
struct HttpError {
  int status = 0;         ///< 0: nothing is wrong
  std::string_view rule;  ///< a literal
  explicit operator bool() const { return status != 0; }
};

/// Finds the end of a head in a growing buffer; looks at each byte once.
class HeadScanner {
 public:
  /// `in` begins with the head and has grown since the last call. The head's size with its blank
  /// line, or nothing yet. `error` for a line end without CR or a head over the limit.
  std::optional<size_t> Scan(std::string_view in, const HeadLimits& limits, HttpError& error);
  void Reset() { seen_ = line_ = 0; }

 private:
  size_t seen_ = 0, line_ = 0;  // scanned so far; where the line at hand begins
};

/// How a body is delimited on the wire.
enum class Framing : uint8_t { kNone, kLength, kChunked, kUntilClose };

struct RequestMeta {
  Framing framing = Framing::kNone;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;
};

/// `head` is what HeadScanner found. On success fills both.
HttpError ParseRequestHead(std::string_view head, const HeadLimits& limits, RequestHead& out,
                           RequestMeta& meta);

struct ResponseMeta {
  Framing framing = Framing::kNone;
  bool keep_alive = true;
};

/// `method` is the request's: an answer to HEAD has no body.
HttpError ParseResponseHead(std::string_view head, const HeadLimits& limits,
                            std::string_view method, ResponseHead& out, ResponseMeta& meta);

/// Takes the chunked coding off, in place. Extensions and trailers are checked, bounded, dropped.
class ChunkedDecoder {
 public:
  struct Step {
    size_t consumed = 0;  ///< bytes of `in` that are done with
    size_t body = 0;      ///< body bytes, now at the front of `in`
  };
  /// Decodes as much of `in` as there is; stops behind the last chunk's end.
  HttpError Decode(std::span<char> in, Step& step);
  bool done() const { return state_ == State::kDone; }
  bool saw_extras() const { return saw_extras_; }  ///< extensions or trailers

 private:
  enum class State : uint8_t {
    kSize,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerLf,
    kDone
  };
  HttpError Byte(char c);  // one byte of framing

  static constexpr uint32_t kExtensionBytesMax = 4096;  // of a whole body
  static constexpr uint32_t kTrailerBytesMax = 8192;
  State state_ = State::kSize;
  uint64_t left_ = 0;    // of the chunk at hand
  uint32_t digits_ = 0;  // of its size
  uint32_t extension_ = 0, trailer_ = 0;
  uint32_t line_ = 0;  // bytes of the trailer line at hand
  bool colon_ = false, saw_extras_ = false;
};

/// What the sending side decides beside the head itself.
struct SendFraming {
  Framing framing = Framing::kNone;
  uint64_t length = 0;  ///< with kLength
  bool close = false;   ///< say `Connection: close`
};

/// Appends a head. Fields that frame are left out of `head.headers` whatever they say.
void AppendRequestHead(std::string& out, const RequestHead& head, const SendFraming& framing);
void AppendResponseHead(std::string& out, const ResponseHead& head, const SendFraming& framing,
                        std::string_view date);

/// Fields that belong to one connection or frame a message.
bool IsHopByHop(std::string_view name);

/// The origin-form in normal form, or nothing if it must be refused. See RequestHead::target.
std::optional<std::string> NormalTarget(std::string_view raw);

}  // namespace hidane::net
