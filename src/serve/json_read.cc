#include "serve/json_read.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace hidane::serve {
namespace {

constexpr int kDepthMax = 64;

bool IsJson(JsonValue value, int depth) {
  namespace od = simdjson::ondemand;
  if (depth > kDepthMax) return false;
  od::json_type type;
  if (value.type().get(type)) return false;
  switch (type) {
    case od::json_type::object: {
      od::object object;
      if (value.get_object().get(object)) return false;
      for (auto entry : object) {
        od::field field;
        std::string_view key;
        if (std::move(entry).get(field) || field.unescaped_key().get(key) ||
            !IsJson(field.value(), depth + 1)) {
          return false;
        }
      }
      return true;
    }
    case od::json_type::array: {
      od::array array;
      if (value.get_array().get(array)) return false;
      for (auto entry : array) {
        JsonValue element;
        if (std::move(entry).get(element) || !IsJson(element, depth + 1)) return false;
      }
      return true;
    }
    case od::json_type::string:
      return !value.get_string().error();
    case od::json_type::number:
      return !value.get_number().error();
    case od::json_type::boolean:
      return !value.get_bool().error();
    case od::json_type::null:
      return IsNull(value);
  }
  return false;
}

}  // namespace

Error BadField(std::string_view name, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("{} {}", name, what), std::string(name)};
}

bool IsNull(JsonValue value) {
  bool is_null = false;
  return !value.is_null().get(is_null) && is_null;
}

Result<bool> ReadBool(JsonValue value, std::string_view name) {
  bool out = false;
  if (value.get_bool().get(out)) return Fail(BadField(name, "is not true or false"));
  return out;
}

Result<int64_t> ReadInt(JsonValue value, std::string_view name, int64_t min, int64_t max) {
  int64_t out = 0;
  if (value.get_int64().get(out)) return Fail(BadField(name, "is not an integer"));
  if (out < min || out > max) {
    return Fail(BadField(name, fmt::format("is {}, not in [{}, {}]", out, min, max)));
  }
  return out;
}

Result<double> ReadNumber(JsonValue value, std::string_view name, double min, double max) {
  double out = 0;
  if (value.get_double().get(out)) return Fail(BadField(name, "is not a number"));
  if (!(out >= min && out <= max)) {
    return Fail(BadField(name, fmt::format("is {}, not in [{}, {}]", out, min, max)));
  }
  return out;
}

Result<std::string> ReadString(JsonValue value, std::string_view name, size_t bytes_max) {
  std::string_view out;
  if (value.get_string().get(out)) return Fail(BadField(name, "is not a string"));
  if (out.size() > bytes_max) {
    return Fail(BadField(name, fmt::format("has {} bytes, over {}", out.size(), bytes_max)));
  }
  return std::string(out);
}

Result<std::string_view> ReadRawArray(JsonValue value, std::string_view name) {
  simdjson::ondemand::array array;
  std::string_view raw;
  if (value.get_array().get(array) || array.raw_json().get(raw)) {
    return Fail(BadField(name, "is not an array"));
  }
  return raw;
}

Result<std::string_view> ReadRawObject(JsonValue value, std::string_view name) {
  simdjson::ondemand::object object;
  std::string_view raw;
  if (value.get_object().get(object) || object.raw_json().get(raw)) {
    return Fail(BadField(name, "is not an object"));
  }
  return raw;
}

Result<std::vector<TokenId>> ReadTokens(JsonValue value, std::string_view name, uint32_t vocab_size,
                                        size_t count_max) {
  simdjson::ondemand::array array;
  if (value.get_array().get(array)) return Fail(BadField(name, "is not an array of token ids"));
  std::vector<TokenId> out;
  for (auto entry : array) {
    JsonValue element;
    if (std::move(entry).get(element)) return Fail(BadField(name, "is not an array of token ids"));
    HIDANE_TRY(const int64_t id, ReadInt(element, name, 0, int64_t{vocab_size} - 1));
    if (out.size() == count_max) {
      return Fail(BadField(name, fmt::format("has more than {} tokens", count_max)));
    }
    out.push_back(static_cast<TokenId>(id));
  }
  return out;
}

Status SkipChecked(JsonValue value, std::string_view name) {
  if (!IsJson(value, 0)) return Fail(BadField(name, "is not valid JSON"));
  return {};
}

}  // namespace hidane::serve
