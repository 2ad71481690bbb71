#include "sim/trace_json.h"

#include <fmt/format.h>

#include <string>

namespace hidane::sim {
namespace {

using simdjson::dom::element;

Error Bad(std::string_view key, const element& value, std::string_view wanted) {
  constexpr size_t kShown = 40;
  std::string text = simdjson::minify(value);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return {Code::kInvalidArgument, fmt::format("{} is {}, not {}", key, text, wanted), {}};
}

Error Missing(std::string_view key) {
  return {Code::kInvalidArgument, fmt::format("{} is missing", key), {}};
}

Result<double> NumberOf(const element& value, std::string_view key, double max) {
  double number = 0;
  if (value.get(number) || !(number >= 0) || number > max) {
    return Fail(Bad(key, value, fmt::format("a number in [0, {:g}]", max)));
  }
  return number;
}

}  // namespace

Result<JsonObject> ParseObject(simdjson::dom::parser& parser, std::string_view line) {
  JsonObject object;
  if (parser.parse(line.data(), line.size()).get(object)) {
    return Fail(
        Code::kInvalidArgument,
        fmt::format("`{}` is no JSON object", line.substr(0, line.size() > 40 ? 40 : line.size())));
  }
  return object;
}

bool Has(const JsonObject& object, std::string_view key) {
  return object.at_key(key).error() == simdjson::SUCCESS;
}

Result<uint64_t> UintOf(element value, std::string_view key, uint64_t max) {
  uint64_t number = 0;
  if (value.get(number) || number > max) {
    return Fail(Bad(key, value, fmt::format("an integer in [0, {}]", max)));
  }
  return number;
}

Result<uint64_t> Uint(const JsonObject& object, std::string_view key, uint64_t max) {
  element value;
  if (object.at_key(key).get(value)) return Fail(Missing(key));
  return UintOf(value, key, max);
}

Result<uint64_t> UintOr(const JsonObject& object, std::string_view key, uint64_t max,
                        uint64_t absent) {
  return Has(object, key) ? Uint(object, key, max) : Result<uint64_t>(absent);
}

Result<double> Number(const JsonObject& object, std::string_view key, double max) {
  element value;
  if (object.at_key(key).get(value)) return Fail(Missing(key));
  return NumberOf(value, key, max);
}

Result<double> NumberOr(const JsonObject& object, std::string_view key, double max, double absent) {
  return Has(object, key) ? Number(object, key, max) : Result<double>(absent);
}

Result<std::string_view> Text(const JsonObject& object, std::string_view key) {
  element value;
  std::string_view text;
  if (object.at_key(key).get(value)) return Fail(Missing(key));
  if (value.get(text)) return Fail(Bad(key, value, "a string"));
  return text;
}

Result<simdjson::dom::array> Array(const JsonObject& object, std::string_view key) {
  element value;
  simdjson::dom::array array;
  if (object.at_key(key).get(value)) return Fail(Missing(key));
  if (value.get(array)) return Fail(Bad(key, value, "an array"));
  return array;
}

}  // namespace hidane::sim
