#include "prompt/message_walk.h"

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace hidane::prompt {
namespace {

namespace od = simdjson::ondemand;
using simdjson::error_code;
using simdjson::SUCCESS;

constexpr int kContentDepthMax = 4;  // deeper contents enter as raw text

// Values under these keys are long bytes in text form: megabytes of stream for few tokens.
constexpr std::string_view kMediaKeys[] = {"image_url", "audio_url", "video_url", "input_audio",
                                           "source",    "image",     "audio",     "file",
                                           "file_data", "data"};

bool IsMedia(std::string_view key) {
  return std::ranges::find(kMediaKeys, key) != std::end(kMediaKeys);
}

error_code AppendValue(JsonValue& value, CanonicalBuffer& text) {
  std::string_view raw;
  if (const error_code error = RawJson(value, raw)) return error;
  text.AppendJson(raw);
  return SUCCESS;
}

void DigestFrom(size_t begin, CanonicalBuffer& text) {
  uint64_t hash = Xxh3(text.view(begin));
  std::array<char, 16> hex;
  for (char& c : hex) {
    c = "0123456789abcdef"[hash >> 60];
    hash <<= 4;
  }
  text.Truncate(begin);
  text.AppendRaw(frame::kDigest);
  text.AppendRaw(std::string_view(hex.data(), hex.size()));
}

Role RoleOf(std::string_view value) {
  if (value == R"("user")") return Role::kUser;
  if (value == R"("system")" || value == R"("developer")") return Role::kSystem;
  return Role::kOther;
}

error_code WalkObject(od::object& object, CanonicalBuffer& text, int depth, Role* role) {
  for (auto entry : object) {
    od::field field;
    if (const error_code error = std::move(entry).get(field)) return error;
    const size_t key_at = text.size();
    text.AppendRaw(frame::kField);
    text.AppendJson(RawKey(field));
    const std::string_view key = text.view(key_at + 1);
    const bool media = IsMedia(key);
    const bool content = key == "content";
    const bool is_role = key == "role";
    if (key == "cache_control") {
      text.Truncate(key_at);
      continue;
    }
    text.AppendRaw(frame::kValue);
    const size_t value_at = text.size();
    JsonValue& value = field.value();
    if (const error_code error =
            content ? WalkContent(value, text, depth + 1) : AppendValue(value, text)) {
      return error;
    }
    if (media) DigestFrom(value_at, text);
    if (is_role && role != nullptr) *role = RoleOf(text.view(value_at));
  }
  return SUCCESS;
}

}  // namespace

error_code RawJson(JsonValue& value, std::string_view& raw) {
  od::json_type type{};
  if (const error_code error = value.type().get(type)) return error;
  if (type == od::json_type::array) {
    od::array array;
    if (const error_code error = value.get_array().get(array)) return error;
    return array.raw_json().get(raw);
  }
  if (type == od::json_type::object) {
    od::object object;
    if (const error_code error = value.get_object().get(object)) return error;
    return object.raw_json().get(raw);
  }
  raw = value.raw_json_token();
  return SUCCESS;
}

bool IsNull(JsonValue& value) {
  bool null = false;
  return value.is_null().get(null) == SUCCESS && null;
}

std::string_view RawKey(od::field& field) {
  const char* const begin = field.key().raw();
  const char* end = begin;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {begin, static_cast<size_t>(end - begin)};
}

error_code WalkContent(JsonValue& value, CanonicalBuffer& text, int depth) {
  od::json_type type{};
  if (const error_code error = value.type().get(type)) return error;
  if (type != od::json_type::array || depth > kContentDepthMax) return AppendValue(value, text);
  od::array items;
  if (const error_code error = value.get_array().get(items)) return error;
  for (auto entry : items) {
    JsonValue item;
    if (const error_code error = std::move(entry).get(item)) return error;
    text.AppendRaw(frame::kItem);
    od::object part;
    const bool walk = item.get_object().get(part) == SUCCESS;
    const error_code error =
        walk ? WalkObject(part, text, depth, nullptr) : AppendValue(item, text);
    if (error) return error;
  }
  return SUCCESS;
}

error_code WalkMessage(od::object& message, CanonicalBuffer& text, Role& role) {
  return WalkObject(message, text, 0, &role);
}

}  // namespace hidane::prompt
