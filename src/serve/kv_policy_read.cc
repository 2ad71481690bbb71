#include "serve/kv_policy_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace hidane::serve {
namespace {

constexpr size_t kPolicyNameBytesMax = 64;

Status ReadMember(engine::KvPolicy& policy, std::string_view key, JsonValue value,
                  std::string_view field) {
  if (key == "name") {
    HIDANE_TRY(policy.name, ReadString(value, field, kPolicyNameBytesMax));
  } else if (key == "budget") {
    HIDANE_TRY(const int64_t budget, ReadInt(value, field, 1, UINT32_MAX));
    policy.budget = static_cast<uint32_t>(budget);
  } else if (key == "keep") {
    HIDANE_TRY(policy.keep, ReadNumber(value, field, 0, 1));
  } else if (key == "shared_prompt") {
    HIDANE_TRY(const int64_t tokens, ReadInt(value, field, 0, UINT32_MAX));
    policy.shared_prompt = static_cast<uint32_t>(tokens);
  } else if (key == "mode") {
    HIDANE_TRY(const std::string mode, ReadString(value, field, kPolicyNameBytesMax));
    const auto known = vtoken::ModeOf(mode);
    if (!known) return Fail(BadField(field, "is not exact, masked or lazy"));
    policy.mode = *known;
  } else {
    return Fail(BadField(field, "is not known"));
  }
  return {};
}

}  // namespace

Result<engine::KvPolicy> ReadKvPolicy(JsonValue value, std::string_view name) {
  simdjson::ondemand::object object;
  if (value.get_object().get(object)) return Fail(BadField(name, "is not an object"));
  engine::KvPolicy policy;
  policy.name.clear();
  std::vector<std::string> seen;
  for (auto entry : object) {
    simdjson::ondemand::field member;
    std::string_view key;
    if (std::move(entry).get(member) || member.unescaped_key().get(key)) {
      return Fail(BadField(name, "is not valid JSON"));
    }
    const std::string field = fmt::format("{}.{}", name, key.substr(0, kPolicyNameBytesMax));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return Fail(BadField(field, "is given twice"));
    }
    seen.emplace_back(key);
    HIDANE_CHECK_OK(ReadMember(policy, key, member.value(), field));
  }
  if (policy.name.empty()) return Fail(BadField(fmt::format("{}.name", name), "is missing"));
  return policy;
}

}  // namespace hidane::serve
