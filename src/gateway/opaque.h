#pragma once
#include <string>
#include <string_view>

namespace hidane::gateway {

/// The top-level `model` of a body whose form the gateway doesn't know; empty when there is none,
/// or the body is no JSON object. `body` must be readable 64 bytes past its end.
std::string OpaqueModel(std::string_view body);

}  // namespace hidane::gateway
