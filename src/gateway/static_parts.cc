#include "gateway/static_parts.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/json_out.h"

namespace hidane::gateway {
namespace {

// Of a request and its answer, not of the prompt.
constexpr std::string_view kDropped[] = {
    "messages", "stream",       "stream_options",  "max_tokens",    "max_completion_tokens",
    "n",        "best_of",      "response_format", "stop",          "stop_sequences",
    "logprobs", "top_logprobs", "logit_bias",      "prediction",    "metadata",
    "store",    "guided_json",  "guided_regex",    "guided_choice", "guided_grammar",
};

simdjson::dom::parser& Parser() {
  static thread_local simdjson::dom::parser parser;
  return parser;
}

bool IsSystem(const simdjson::dom::element& message) {
  std::string_view role;
  if (message["role"].get_string().get(role) != simdjson::SUCCESS) return false;
  return role == "system" || role == "developer";
}

// The messages that the prompt begins with, as far as they are the system's.
void AppendSystemMessages(const simdjson::dom::array& messages, JsonWriter& out) {
  for (const simdjson::dom::element message : messages) {
    if (!IsSystem(message)) return;
    out.Raw(simdjson::minify(message));
  }
}

size_t BytesOf(const StaticPart& part) {
  return part.body.size() + part.identity.size() * (sizeof(uint64_t) + sizeof(uint32_t));
}

}  // namespace

std::optional<std::string> RefreshBody(prompt::Api api, std::string_view body) {
  if (api != prompt::Api::kChat && api != prompt::Api::kMessages) return std::nullopt;
  simdjson::dom::object object;
  if (Parser().parse(body.data(), body.size()).get_object().get(object) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  simdjson::dom::array messages;
  if (object["messages"].get_array().get(messages) != simdjson::SUCCESS) return std::nullopt;
  JsonWriter out;
  out.BeginObject();
  for (const auto [key, value] : object) {
    if (std::ranges::find(kDropped, key) != std::end(kDropped)) continue;
    out.Key(key).Raw(simdjson::minify(value));
  }
  out.Field("max_tokens", 1).Key("messages").BeginArray();
  AppendSystemMessages(messages, out);
  out.BeginObject().Field("role", "user").Field("content", ".").EndObject();
  out.EndArray().EndObject();
  return out.Take();
}

bool StaticParts::Knows(uint64_t k1) const {
  const std::lock_guard lock(mutex_);
  return where_.contains(k1);
}

std::shared_ptr<const StaticPart> StaticParts::Find(uint64_t k1) const {
  const std::lock_guard lock(mutex_);
  const auto at = where_.find(k1);
  return at == where_.end() ? nullptr : at->second->second;
}

void StaticParts::Put(uint64_t k1, StaticPart part) {
  const size_t bytes = BytesOf(part);
  auto kept = std::make_shared<const StaticPart>(std::move(part));
  const std::lock_guard lock(mutex_);
  if (bytes > bytes_max_ || where_.contains(k1)) return;
  parts_.emplace_front(k1, std::move(kept));
  where_.emplace(k1, parts_.begin());
  bytes_ += bytes;
  while (bytes_ > bytes_max_) {
    bytes_ -= BytesOf(*parts_.back().second);
    where_.erase(parts_.back().first);
    parts_.pop_back();
  }
}

}  // namespace hidane::gateway
