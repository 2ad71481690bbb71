#include "gateway/usage.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

namespace hidane::gateway {
namespace {

constexpr std::string_view kUsageKey = "\"usage\"";
constexpr size_t kTailBytes = 16'384;

int64_t Count(simdjson::dom::element object, std::string_view key) {
  int64_t n = -1;
  return object[key].get(n) == simdjson::SUCCESS && n >= 0 ? n : -1;
}

/// The chat form's names, else the Responses form's.
std::optional<Usage> UsageOf(simdjson::dom::element object) {
  if (!object.is_object()) return std::nullopt;
  Usage usage{Count(object, "prompt_tokens"), -1, Count(object, "completion_tokens")};
  if (usage.prompt_tokens < 0) usage.prompt_tokens = Count(object, "input_tokens");
  if (usage.completion_tokens < 0) usage.completion_tokens = Count(object, "output_tokens");
  simdjson::dom::element details;
  if (object["prompt_tokens_details"].get(details) == simdjson::SUCCESS ||
      object["input_tokens_details"].get(details) == simdjson::SUCCESS)
    usage.cached_tokens = Count(details, "cached_tokens");
  return usage;
}

simdjson::dom::parser& ThreadParser() {
  static thread_local simdjson::dom::parser parser;
  return parser;
}

/// The value of the event's first data field; usage events have one.
std::string_view DataOf(std::string_view event) {
  const size_t at = event.find("data:");
  if (at == std::string_view::npos) return {};
  std::string_view data = event.substr(at + 5);
  return data.substr(0, data.find_first_of("\r\n"));
}

size_t NextBreak(std::string_view text, size_t from) {
  const size_t lf = text.find('\n', from);
  const size_t cr = text.substr(0, lf).find('\r', from);
  return cr == std::string_view::npos ? lf : cr;
}

}  // namespace

bool UsageFilter::Keep(std::string_view event) {
  if (event.find(kUsageKey) == std::string_view::npos) return true;
  const std::string_view data = DataOf(event);
  simdjson::dom::element root, usage, choices;
  if (ThreadParser().parse(data.data(), data.size()).get(root) != simdjson::SUCCESS) return true;
  if (root["usage"].get(usage) != simdjson::SUCCESS) return true;
  const auto counts = UsageOf(usage);
  if (!counts) return true;  // `"usage":null` on the way
  usage_ = counts;
  simdjson::dom::array list;
  const bool alone = root["choices"].get(list) == simdjson::SUCCESS && list.size() == 0;
  return !(remove_ && alone);
}

/// Which bytes of one chunk go on: a part of the chunk itself while nothing was cut out of it,
/// else a copy.
class UsageFilter::Pass {
 public:
  Pass(std::string_view chunk, std::string& copy) : chunk_(chunk), copy_(copy) { copy_.clear(); }
  void Drop(size_t from, size_t to) {
    copy_.append(chunk_.substr(from_, from - from_));
    from_ = to;
    copied_ = true;
  }
  void Insert(size_t at, std::string_view text) {
    if (text.empty()) return;
    Drop(at, at);
    copy_.append(text);
  }
  std::string_view Upto(size_t end) {
    if (!copied_) return chunk_.substr(0, end);
    return copy_.append(chunk_.substr(from_, end - from_));
  }

 private:
  std::string_view chunk_;
  std::string& copy_;
  size_t from_ = 0;  // chunk_[from_, ...) is not in copy_
  bool copied_ = false;
};

size_t UsageFilter::EndOfEvent(std::string_view chunk, size_t at) {
  while (at < chunk.size()) {
    const size_t line_end = NextBreak(chunk, at);
    if (line_end == std::string_view::npos) {
      line_empty_ = false;
      return line_end;
    }
    const bool blank = line_empty_ && line_end == at;
    line_empty_ = true;
    at = line_end + 1;
    if (chunk[line_end] == '\r') {
      skip_lf_ = at == chunk.size();
      if (!skip_lf_ && chunk[at] == '\n') ++at;
    }
    if (blank) return at;
  }
  return std::string_view::npos;
}

std::string_view UsageFilter::Feed(std::string_view chunk) {
  if (chunk.empty()) return chunk;
  Pass pass(chunk, out_);
  size_t event = 0;  // where the current event begins, or goes on, in the chunk
  size_t at = 0;
  if (std::exchange(skip_lf_, false) && chunk[0] == '\n') {
    at = 1;
    if (held_.empty() && !unread_) {  // it belongs to the event before and shares its fate
      event = 1;
      if (!last_kept_) pass.Drop(0, 1);
    }
  }
  for (size_t end; (end = EndOfEvent(chunk, at)) != std::string_view::npos; event = at = end) {
    const std::string_view part = chunk.substr(event, end - event);
    const size_t before = held_.size();
    last_kept_ = unread_ || Keep(before == 0 ? part : held_.append(part));
    if (last_kept_) {
      pass.Insert(event, std::string_view(held_).substr(0, before));
    } else {
      pass.Drop(event, end);
    }
    held_.clear();
    unread_ = false;
  }
  return Hold(chunk, event, pass);
}

std::string_view UsageFilter::Hold(std::string_view chunk, size_t event, Pass& pass) {
  const std::string_view rest = chunk.substr(event);
  if (!unread_ && held_.size() + rest.size() > held_max_) {
    unread_ = true;
    pass.Insert(event, held_);
    held_.clear();
  }
  if (unread_) return pass.Upto(chunk.size());
  held_.append(rest);
  return pass.Upto(event);
}

std::string_view UsageFilter::Finish() {
  out_ = std::exchange(held_, {});
  if (!out_.empty()) (void)Keep(out_);  // it counts, but is sent: it may not be what it seems
  return out_;
}

void UsageTail::Feed(std::string_view chunk) {
  tail_.append(chunk.substr(chunk.size() - std::min(chunk.size(), kTailBytes)));
  if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
}

std::optional<Usage> UsageTail::Finish() const {
  const size_t key = tail_.rfind(kUsageKey);
  if (key == std::string::npos) return std::nullopt;
  const size_t begin = tail_.find_first_not_of(" \t\r\n:", key + kUsageKey.size());
  if (begin == std::string::npos || tail_[begin] != '{') return std::nullopt;
  size_t depth = 0, end = begin;  // a usage object holds no string with a brace
  for (; end < tail_.size(); ++end) {
    depth += tail_[end] == '{';
    if (tail_[end] == '}' && --depth == 0) break;
  }
  simdjson::dom::element usage;
  const auto object = std::string_view(tail_).substr(begin, end + 1 - begin);
  if (ThreadParser().parse(object.data(), object.size()).get(usage) != simdjson::SUCCESS)
    return std::nullopt;
  return UsageOf(usage);
}

}  // namespace hidane::gateway
