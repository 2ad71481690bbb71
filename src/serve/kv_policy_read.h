#pragma once
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"
#include "serve/json_read.h"

namespace hidane::serve {

/// {"name": "h2o", "budget": 512, "keep": 0.5, "shared_prompt": 1000, "mode": "exact"}: all but the
/// name may be missing. kInvalidArgument names the member that is unknown, given twice or of
/// another type; what a value means is the engine's to check.
Result<engine::KvPolicy> ReadKvPolicy(JsonValue value, std::string_view name);

}  // namespace hidane::serve
