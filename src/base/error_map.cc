#include "base/error_map.h"

#include "base/json_out.h"

namespace hidane {

WireError ToWire(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return {400, "invalid_request_error", "invalid_value"};
    case Code::kUnauthenticated:
      return {401, "authentication_error", "invalid_api_key"};
    case Code::kNotFound:
      return {404, "not_found_error", "not_found"};
    case Code::kTooLarge:
      return {413, "invalid_request_error", "too_large"};
    case Code::kResourceExhausted:
      return {429, "rate_limit_error", "rate_limit_exceeded"};
    case Code::kDeadlineExceeded:
      return {504, "server_error", "upstream_timeout"};
    case Code::kCancelled:
      return {499, "server_error", "cancelled"};
    case Code::kUnavailable:
      return {503, "server_error", "no_backend"};
    case Code::kDataLoss:
      return {502, "server_error", "bad_upstream"};
    case Code::kInternal:
      return {500, "server_error", "internal"};
  }
  return {500, "server_error", "internal"};
}

std::string ErrorBody(const Error& error) {
  const WireError wire = ToWire(error.code);
  JsonWriter w;
  w.BeginObject().Key("error").BeginObject();
  w.Field("message", error.what).Field("type", wire.type).Field("code", wire.code).Key("param");
  error.param.empty() ? w.Null() : w.String(error.param);
  w.EndObject().EndObject();
  return w.Take();
}

}  // namespace hidane
