#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string_view>

#include "base/result.h"

/// Typed fields of one JSON line of a trace. kInvalidArgument names the field and its value.
namespace hidane::sim {

using JsonObject = simdjson::dom::object;

/// An object that the parser holds until it parses again.
Result<JsonObject> ParseObject(simdjson::dom::parser& parser, std::string_view line);
bool Has(const JsonObject& object, std::string_view key);
/// An integer in [0, max].
Result<uint64_t> Uint(const JsonObject& object, std::string_view key, uint64_t max);
Result<uint64_t> UintOr(const JsonObject& object, std::string_view key, uint64_t max,
                        uint64_t absent);
/// A number in [0, max].
Result<double> Number(const JsonObject& object, std::string_view key, double max);
Result<double> NumberOr(const JsonObject& object, std::string_view key, double max, double absent);
Result<std::string_view> Text(const JsonObject& object, std::string_view key);
Result<simdjson::dom::array> Array(const JsonObject& object, std::string_view key);
/// `element` as an integer >= 0; `key` names it in the error.
Result<uint64_t> UintOf(simdjson::dom::element element, std::string_view key, uint64_t max);

}  // namespace hidane::sim
