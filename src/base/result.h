#pragma once
#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace hidane {

/// What went wrong, as a closed set. base/error_map.h gives each its HTTP status and OpenAI type.
enum class Code : uint8_t {
  kInvalidArgument,    ///< the caller's value is wrong; retrying cannot help
  kUnauthenticated,    ///< no or unknown credential
  kNotFound,           ///< no such model, route or file
  kTooLarge,           ///< body, header or prompt over a stated limit
  kResourceExhausted,  ///< a bound was reached; retrying later can help
  kDeadlineExceeded,   ///< the peer was silent past its limit
  kCancelled,          ///< the caller went away
  kUnavailable,        ///< no healthy endpoint, or it refused
  kDataLoss,           ///< a peer broke its protocol or cut a message
  kInternal,           ///< our fault
};

struct Error {
  Code code;
  std::string what;   ///< for people: lower case, names the offending value; never parsed
  std::string param;  ///< the offending field of a request, empty if none
};

/// The only error channel of the data plane. A class, not an alias, so that dropping one warns.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};
using Status = Result<void>;

inline tl::unexpected<Error> Fail(Code code, std::string what, std::string param = {}) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(param)});
}
inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace hidane

#define HIDANE_CONCAT_(a, b) a##b
#define HIDANE_CONCAT(a, b) HIDANE_CONCAT_(a, b)

/// `HIDANE_TRY(const auto v, Parse(x));` declares v, or returns Parse's error. Not in coroutines.
#define HIDANE_TRY(decl, expr)                                               \
  auto HIDANE_CONCAT(try_, __LINE__) = (expr);                               \
  if (!HIDANE_CONCAT(try_, __LINE__))                                        \
    return ::hidane::Fail(std::move(HIDANE_CONCAT(try_, __LINE__)).error()); \
  decl = *std::move(HIDANE_CONCAT(try_, __LINE__))

/// `HIDANE_CHECK_OK(DoIt());` returns DoIt's error, if any.
#define HIDANE_CHECK_OK(expr)                                                               \
  do {                                                                                      \
    if (auto status_ = (expr); !status_) return ::hidane::Fail(std::move(status_).error()); \
  } while (false)
