#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

/// Typed reading of one JSON value of a request. Each is kInvalidArgument, with the field's name in
/// `param`, for another type, broken JSON, or a value out of range. Each value can be read once.
namespace hidane::serve {

using JsonValue = simdjson::ondemand::value;

Error BadField(std::string_view name, std::string_view what);

bool IsNull(JsonValue value);
Result<bool> ReadBool(JsonValue value, std::string_view name);
/// An integer written as one (1.0 is not), in [min, max].
Result<int64_t> ReadInt(JsonValue value, std::string_view name, int64_t min, int64_t max);
Result<double> ReadNumber(JsonValue value, std::string_view name, double min, double max);
Result<std::string> ReadString(JsonValue value, std::string_view name, size_t bytes_max);
/// The array or object as it stands in the text. Its inside is not checked.
Result<std::string_view> ReadRawArray(JsonValue value, std::string_view name);
Result<std::string_view> ReadRawObject(JsonValue value, std::string_view name);
/// Token ids in [0, vocab_size), at most `count_max`.
Result<std::vector<TokenId>> ReadTokens(JsonValue value, std::string_view name, uint32_t vocab_size,
                                        size_t count_max);
/// Reads past a value that nobody uses, checking that it is JSON, nested at most 64 deep.
Status SkipChecked(JsonValue value, std::string_view name);

}  // namespace hidane::serve
