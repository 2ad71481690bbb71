#include "gateway/static_parts.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/json_out.h"

namespace hidane::gateway {
namespace {

// Of a request and its answer, not of the prompt.
constexpr std::string_view kDropped[] = {
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "n",
    "best_of",
    "stop",
    "stop_sequences",
    "response_format",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "prediction",
    "metadata",
    "store",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
};

/// The value as it is spelled; nullopt where it has no end.
std::optional<std::string_view> Spelled(simdjson::ondemand::value value) {
  std::string_view text;
  const bool ends = simdjson::to_json_string(value).get(text) == simdjson::SUCCESS;
  return ends ? std::optional(text) : std::nullopt;
}

bool IsSystem(std::string_view message) {
  static thread_local simdjson::dom::parser parser;
  std::string_view role;
  const auto found = parser.parse(message.data(), message.size())["role"].get_string().get(role);
  return found == simdjson::SUCCESS && (role == "system" || role == "developer");
}

/// The messages that the prompt begins with, as far as they are the system's, and a user's. False:
/// no array.
bool AppendMessages(simdjson::ondemand::value value, JsonWriter& out) {
  simdjson::ondemand::array messages;
  if (value.get_array().get(messages) != simdjson::SUCCESS) return false;
  out.Key("messages").BeginArray();
  bool system = true;
  for (auto element : messages) {
    simdjson::ondemand::value message;
    if (element.get(message) != simdjson::SUCCESS) return false;
    const auto text = Spelled(message);
    if (!text) return false;
    system = system && IsSystem(*text);
    if (system) out.Raw(*text);
  }
  out.BeginObject().Field("role", "user").Field("content", ".").EndObject().EndArray();
  return true;
}

size_t BytesOf(const StaticPart& part) {
  return part.body.size() + part.identity.size() * (sizeof(uint64_t) + sizeof(uint32_t));
}

}  // namespace

// Values are copied as they are spelled: the prefix is the client's, byte for byte.
std::optional<std::string> RefreshBody(prompt::Api api, std::string_view body) {
  static thread_local simdjson::ondemand::parser parser;
  if (api != prompt::Api::kChat && api != prompt::Api::kMessages) return std::nullopt;
  const simdjson::padded_string padded(body);
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(padded).get(document) != simdjson::SUCCESS) return std::nullopt;
  if (document.get_object().get(object) != simdjson::SUCCESS) return std::nullopt;
  JsonWriter out;
  out.BeginObject();
  bool messages = false;
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) return std::nullopt;
    simdjson::ondemand::value value;
    if (field.value().get(value) != simdjson::SUCCESS) return std::nullopt;
    if (key == "messages") {
      messages = AppendMessages(value, out);
      if (!messages) return std::nullopt;
    } else if (std::ranges::find(kDropped, key) == std::end(kDropped)) {
      const auto text = Spelled(value);
      if (!text) return std::nullopt;
      out.Key(key).Raw(*text);
    }
  }
  if (!messages) return std::nullopt;
  return out.Field("max_tokens", 1).EndObject().Take();
}

bool StaticParts::Knows(uint64_t k1) const {
  const std::lock_guard lock(mutex_);
  return parts_.Find(k1) != nullptr;
}

std::shared_ptr<const StaticPart> StaticParts::Find(uint64_t k1) const {
  const std::lock_guard lock(mutex_);
  const auto* const part = parts_.Find(k1);
  return part == nullptr ? nullptr : *part;
}

void StaticParts::Put(uint64_t k1, StaticPart part) {
  const size_t bytes = BytesOf(part);
  auto kept = std::make_shared<const StaticPart>(std::move(part));
  const std::lock_guard lock(mutex_);
  if (bytes > bytes_max_ || parts_.Find(k1) != nullptr) return;
  parts_.Touch(k1) = std::move(kept);
  bytes_ += bytes;
  while (bytes_ > bytes_max_) {
    bytes_ -= BytesOf(*parts_.oldest().second);
    parts_.Erase(parts_.oldest().first);
  }
}

}  // namespace hidane::gateway
