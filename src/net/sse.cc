#include "net/sse.h"

#include <fmt/format.h>

#include <cstring>

namespace hidane::net {
namespace {

/// Cuts the first line, whatever ends it, off `rest`.
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = rest.find_first_of("\r\n");
  const std::string_view line = rest.substr(0, end);
  if (end == std::string_view::npos) {
    rest = {};
    return line;
  }
  rest.remove_prefix(rest.substr(end, 2) == "\r\n" ? end + 2 : end + 1);
  return line;
}

}  // namespace

void SseSplitter::Feed(std::string_view bytes) {
  in_ = bytes;
}

size_t SseSplitter::FindEnd() {
  for (size_t i = 0; i < in_.size(); ++i) {
    const char c = in_[i];
    switch (at_) {
      case At::kLineStart:
        if (c == '\n') return i + 1;
        at_ = c == '\r' ? At::kBlankCr : At::kInLine;
        break;
      case At::kInLine: {
        const size_t lf = in_.find('\n', i);
        const size_t cr = in_.substr(0, lf).find('\r', i);
        i = cr != std::string_view::npos ? cr : lf;
        if (i == std::string_view::npos) return i;
        at_ = i == cr ? At::kAfterCr : At::kLineStart;
        break;
      }
      case At::kAfterCr:  // a LF still belongs to that line's end
        if (c == '\r') return i + 1;
        at_ = c == '\n' ? At::kLineStart : At::kInLine;
        break;
      case At::kBlankCr:  // a LF still belongs to the blank line
        return c == '\n' ? i + 1 : i;
    }
  }
  return std::string_view::npos;
}

std::optional<SseEvent> SseSplitter::Next() {
  if (!status_) return std::nullopt;
  const size_t end = FindEnd();
  const size_t size = held_.size() + (end == std::string_view::npos ? in_.size() : end);
  if (size > event_bytes_max_) {
    status_ = Fail(Code::kTooLarge, fmt::format("an event of over {} bytes", event_bytes_max_));
    return std::nullopt;
  }
  if (end == std::string_view::npos) {
    held_ += in_;
    in_ = {};
    return std::nullopt;
  }
  std::string_view raw = in_.substr(0, end);
  in_.remove_prefix(end);
  at_ = At::kLineStart;
  if (!held_.empty()) {
    held_ += raw;
    out_.swap(held_);
    held_.clear();
    raw = out_;
  }
  return Parse(raw);
}

std::optional<SseEvent> SseSplitter::Parse(std::string_view raw) {
  SseEvent event{.type = {}, .data = {}, .raw = raw};
  std::string_view rest = raw;
  if (std::exchange(first_, false) && rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  size_t data_lines = 0;
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    const std::string_view name = line.substr(0, line.find(':'));
    std::string_view value = line.substr(std::min(name.size() + 1, line.size()));
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (name == "event") {
      event.type = value;
    } else if (name == "data") {
      if (data_lines == 1) joined_ = event.data;
      if (data_lines > 0) joined_.append("\n").append(value);
      event.data = data_lines++ == 0 ? value : std::string_view(joined_);
    }
  }
  return event;
}

void AppendSse(std::string& out, std::string_view data, std::string_view type) {
  if (!type.empty()) out.append("event: ").append(type).append("\n");
  do {
    const size_t before = data.size();
    const std::string_view line = TakeLine(data);
    out.append("data: ").append(line).append("\n");
    if (data.empty() && before > line.size()) out.append("data: \n");  // it ended with a line end
  } while (!data.empty());
  out.append("\n");
}

}  // namespace hidane::net
