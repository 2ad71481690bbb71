// HTTP/1.1 requests: pieces must not matter, and what we take, Beast's parser takes too.
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <string>

#include "net/http1.h"

namespace {

using namespace hidane::net;

struct Outcome {
  int status = 0;
  bool complete = false, extras = false, expects = false;
  size_t consumed = 0;
  std::string target, body;
  bool operator==(const Outcome&) const = default;
};

/// Reads one request, fed in pieces of `step` bytes.
Outcome ReadOne(std::string_view in, size_t step) {
  Outcome out;
  const HeadLimits limits;
  HeadScanner scanner;
  std::optional<size_t> size;
  size_t have = 0;
  while (!size && have < in.size()) {
    have = std::min(in.size(), have + step);
    HttpError error;
    size = scanner.Scan(in.substr(0, have), limits, error);
    if (error) return {.status = error.status};
  }
  if (!size) return out;
  RequestHead head;
  RequestMeta meta;
  if (const HttpError e = ParseRequestHead(in.substr(0, *size), limits, head, meta)) {
    return {.status = e.status};
  }
  out.target = head.target;
  out.expects = meta.expect_continue;
  out.consumed = *size;
  if (meta.framing == Framing::kLength) {
    if (in.size() - *size < *head.body_size) return out;
    out.body = in.substr(*size, *head.body_size);
    out.consumed += *head.body_size;
  }
  ChunkedDecoder decoder;
  while (meta.framing == Framing::kChunked && !decoder.done()) {
    std::string piece(in.substr(out.consumed, step));
    if (piece.empty()) return out;
    ChunkedDecoder::Step done;
    if (const HttpError e = decoder.Decode(piece, done)) return {.status = e.status};
    out.body += piece.substr(0, done.body);
    out.consumed += done.consumed;
  }
  out.extras = decoder.saw_extras();
  out.complete = true;
  return out;
}

bool BeastTakesIt(std::string_view in, const Outcome& ours) {
  namespace http = boost::beast::http;
  http::request_parser<http::string_body> parser;
  parser.header_limit(128 << 10);
  parser.body_limit(boost::none);
  parser.eager(true);
  boost::system::error_code error;
  size_t used = 0;
  while (!parser.is_done() && used < in.size()) {
    used += parser.put(boost::asio::buffer(in.data() + used, in.size() - used), error);
    if (error) return false;
  }
  return parser.is_done() && used == ours.consumed && parser.get().body() == ours.body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const Outcome whole = ReadOne(in, size + 1);
  if (ReadOne(in, 1 + size % 7) != whole) __builtin_trap();
  // We drop extensions and trailers, which Beast checks further.
  if (whole.complete && !whole.extras && !BeastTakesIt(in, whole)) __builtin_trap();
  return 0;
}
