#pragma once
#include <cstdint>

#include "prompt/canonical.h"
#include "prompt/json_cursor.h"

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

/// Reads the object under the cursor and appends its fields in their given order, without
/// `cache_control` (it moves from turn to turn and is not part of the prompt); images, audio and
/// files enter as digests.
Role WalkMessage(JsonCursor& at, CanonicalBuffer& text);

/// Reads and appends a string or an array of content parts. `depth`: nested contents so far.
void WalkContent(JsonCursor& at, CanonicalBuffer& text, int depth = 0);

}  // namespace hidane::prompt
