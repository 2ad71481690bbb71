#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace hidane {

/// How a Code shows on the wire: one HTTP status, one OpenAI `error.type`, one `error.code`.
/// The list is closed and documented in docs/errors.md.
struct WireError {
  int http_status;
  std::string_view type;
  std::string_view code;
};
WireError ToWire(Code code);

/// `{"error":{"message","type","code","param"}}`; param is null when the error has none.
std::string ErrorBody(const Error& error);

}  // namespace hidane
