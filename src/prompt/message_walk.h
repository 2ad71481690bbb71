#pragma once
#include <simdjson.h>

#include <cstdint>
#include <string_view>

#include "prompt/canonical.h"

namespace hidane::prompt {

/// Bytes that delimit the parts of the canonical stream. Canonical JSON text holds no byte below
/// 0x20, so no text can imitate a frame: different prompts have different streams. Frames stand
/// before what they name, never with its length, so that prompts that begin alike share their
/// beginning.
namespace frame {
inline constexpr char kMessage = 0x01;
inline constexpr char kField = 0x02;
inline constexpr char kValue = 0x03;
inline constexpr char kItem = 0x04;
inline constexpr char kDigest = 0x05;  ///< sixteen hex digits follow
inline constexpr char kTokenIds = 0x06;
inline constexpr char kLane = 0x10;  ///< + lane number
}  // namespace frame

enum class Role : uint8_t { kOther, kSystem, kUser };

using JsonValue = simdjson::ondemand::value;

/// Appends a message's fields in their given order, without `cache_control` (it moves from turn
/// to turn and is not part of the prompt); images, audio and files enter as digests.
simdjson::error_code WalkMessage(simdjson::ondemand::object& message, CanonicalBuffer& text,
                                 Role& role);

/// Appends a string or an array of content parts. `depth`: nested contents so far.
simdjson::error_code WalkContent(JsonValue& value, CanonicalBuffer& text, int depth = 0);

/// The value's text in the body, perhaps with white space behind it. Consumes the value.
simdjson::error_code RawJson(JsonValue& value, std::string_view& raw);

bool IsNull(JsonValue& value);

/// The key between its quotes, as spelled.
std::string_view RawKey(simdjson::ondemand::field& field);

}  // namespace hidane::prompt
