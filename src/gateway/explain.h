#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "gateway/context.h"
#include "prompt/body_reader.h"

namespace hidane::gateway {

/// Where a body that is posted to `path` would go now, and why, as the JSON of `/hidane/explain`.
/// Nothing is sent and nothing changes. kInvalidArgument: no such path or a bad body; kNotFound and
/// kUnavailable as for a real request.
///
/// REQUIRES: body readable to body.size() + BodyReader::kPadding.
Result<std::string> Explain(Context& context, prompt::BodyReader& reader, std::string_view path,
                            std::string_view body);

}  // namespace hidane::gateway
