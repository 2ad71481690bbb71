#include "serve/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace hidane::serve {
namespace {

/// Length of the longest end of `text` with which `stop` begins, short of all of it.
size_t Overlap(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (stop.starts_with(text.substr(text.size() - n))) return n;
  }
  return 0;
}

}  // namespace

std::string StopMatcher::Push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  size_t end = std::string::npos, begin = std::string::npos;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) {
      keep = std::max(keep, Overlap(held_, stop));
    } else if (std::pair(at + stop.size(), at) < std::pair(end, begin)) {
      end = at + stop.size();
      begin = at;
    }
  }
  stopped_ = begin != std::string::npos;
  std::string out = held_.substr(0, stopped_ ? begin : held_.size() - keep);
  held_.erase(0, stopped_ ? held_.size() : out.size());
  return out;
}

std::string StopMatcher::Flush() {
  return std::exchange(held_, {});
}

}  // namespace hidane::serve
