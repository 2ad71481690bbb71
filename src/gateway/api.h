#pragma once
#include <optional>
#include <string_view>

#include "gateway/config.h"
#include "prompt/body_reader.h"

namespace hidane::gateway {

/// The request form that a POST to `path` carries; none where no prompt is read from the body.
std::optional<prompt::Api> ApiOf(std::string_view path);

/// How bodies are read under this configuration.
prompt::ReadOptions ReadOptionsOf(const Config& config);

}  // namespace hidane::gateway
