#pragma once
#include <cstddef>
#include <cstdint>

namespace hidane::prompt {

/// One escape at `at` (its backslash), rewritten to its canonical spelling.
struct EscapeRewrite {
  size_t consumed;  ///< bytes of input, at least 2
  size_t written;   ///< bytes of output, at most `consumed`
};

/// REQUIRES: at < end, *at is a backslash; out has 12 bytes. Escapes that are broken or have
/// one spelling only are copied. Half of a surrogate pair keeps its \u form, in lower case.
EscapeRewrite RewriteEscape(const char* at, const char* end, char* out);

}  // namespace hidane::prompt
