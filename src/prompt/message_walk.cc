#include "prompt/message_walk.h"

#include <algorithm>
#include <array>

#include "base/hash.h"

namespace hidane::prompt {
namespace {

constexpr int kContentDepthMax = 4;  // deeper contents enter as raw text

// Values under these keys are long bytes in text form: megabytes of stream for few tokens.
constexpr std::string_view kMediaKeys[] = {
    R"("image_url")", R"("audio_url")", R"("video_url")", R"("input_audio")", R"("source")",
    R"("image")",     R"("audio")",     R"("file")",      R"("file_data")",   R"("data")"};

bool IsMedia(std::string_view key) {
  return std::ranges::find(kMediaKeys, key) != std::end(kMediaKeys);
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

Role WalkObject(JsonCursor& at, CanonicalBuffer& text, int depth) {
  Role role = Role::kOther;
  for (bool more = at.Enter('{'); more; more = at.Next('}')) {
    const size_t field_at = text.size();
    text.AppendRaw(frame::kField);
    at.CopyKey(text);
    const std::string_view key = text.view(field_at + 1);
    const bool media = IsMedia(key);
    const bool content = key == R"("content")";
    const bool is_role = key == R"("role")";
    const bool skipped = key == R"("cache_control")";
    text.AppendRaw(frame::kValue);
    const size_t value_at = text.size();
    if (content)
      WalkContent(at, text, depth + 1);
    else
      at.Copy(text);
    if (media) DigestFrom(value_at, text);
    if (is_role) role = RoleOf(text.view(value_at));
    if (skipped) text.Truncate(field_at);
  }
  return role;
}

}  // namespace

void WalkContent(JsonCursor& at, CanonicalBuffer& text, int depth) {
  if (at.Peek() != '[' || depth > kContentDepthMax) {
    at.Copy(text);
    return;
  }
  for (bool more = at.Enter('['); more; more = at.Next(']')) {
    text.AppendRaw(frame::kItem);
    if (at.Peek() == '{')
      WalkObject(at, text, depth);
    else
      at.Copy(text);
  }
}

Role WalkMessage(JsonCursor& at, CanonicalBuffer& text) {
  return WalkObject(at, text, 0);
}

}  // namespace hidane::prompt
