#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace hidane::cli {

/// The answer of a gateway's `/hidane/explain` as a text for somebody who never saw the code: what
/// the prompt is made of, who was compared, why the winner won, what else could have been.
/// kDataLoss when `json` is no such answer.
Result<std::string> ExplainText(std::string_view json);

/// The answer of `/hidane/decisions`, newest first: what was expected and what came.
Result<std::string> DecisionsText(std::string_view json);

/// The message in an error answer; `json` itself when it has none.
std::string ErrorMessage(std::string_view json);

}  // namespace hidane::cli
