#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace hidane::cli {

/// The JSON of an engine's /hidane/kv as a picture for a terminal of `columns`: how full memory is,
/// and for each sequence which stretches of its stream live and how many blocks hold them.
/// kInvalidArgument when it is something else.
Result<std::string> KvText(std::string_view json, size_t columns);

}  // namespace hidane::cli
