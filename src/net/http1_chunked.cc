#include <algorithm>
#include <cstring>

#include "net/http1.h"
#include "net/http1_chars.h"

namespace hidane::net {

HttpError ChunkedDecoder::Decode(std::span<char> in, Step& step) {
  step = {};
  while (step.consumed < in.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const size_t n = std::min<uint64_t>(left_, in.size() - step.consumed);
      if (step.body != step.consumed) {
        std::memmove(in.data() + step.body, in.data() + step.consumed, n);
      }
      step.body += n;
      step.consumed += n;
      left_ -= n;
      if (left_ == 0) state_ = State::kDataCr;
      continue;
    }
    if (HttpError e = Byte(in[step.consumed])) return e;
    ++step.consumed;
  }
  return {};
}

HttpError ChunkedDecoder::Byte(char c) {
  switch (state_) {
    case State::kSize:
      if (const int digit = HexDigit(c); digit >= 0) {
        if (++digits_ > 15) return {400, "chunk size of more than 15 digits"};
        left_ = left_ * 16 + static_cast<uint64_t>(digit);
        return {};
      }
      if (digits_ == 0 || (c != ';' && c != '\r')) return {400, "chunk size is no hex number"};
      state_ = c == '\r' ? State::kSizeLf : State::kExtension;
      saw_extras_ |= c == ';';
      return {};
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeLf;
        return {};
      }
      if (!Is(c, kValueChar)) return {400, "control byte in a chunk extension"};
      if (++extension_ > kExtensionBytesMax) return {400, "chunk extensions too large"};
      return {};
    case State::kSizeLf:
      if (c != '\n') return {400, "chunk size line without LF"};
      state_ = left_ == 0 ? State::kTrailer : State::kData;
      digits_ = 0;
      return {};
    case State::kDataCr:
      if (c != '\r') return {400, "chunk longer than its size"};
      state_ = State::kDataLf;
      return {};
    case State::kDataLf:
      if (c != '\n') return {400, "chunk data without LF"};
      state_ = State::kSize;
      return {};
    case State::kTrailer:
      if (c == '\r') {
        if (line_ != 0 && !colon_) return {400, "trailer line without colon"};
        state_ = State::kTrailerLf;
        return {};
      }
      if (!Is(c, colon_ ? kValueChar : kTokenChar) && (c != ':' || line_ == 0)) {
        return {400, "bad byte in a trailer"};
      }
      saw_extras_ = true;
      if (++trailer_ > kTrailerBytesMax) return {400, "trailers too large"};
      colon_ |= c == ':';
      ++line_;
      return {};
    case State::kTrailerLf:
      if (c != '\n') return {400, "trailer line without LF"};
      state_ = line_ == 0 ? State::kDone : State::kTrailer;
      line_ = 0;
      colon_ = false;
      return {};
    case State::kData:
    case State::kDone:
      break;
  }
  return {};
}

}  // namespace hidane::net
