#include "gateway/respond.h"

#include <utility>

#include "base/error_map.h"

namespace hidane::gateway {

net::Task<Status> RespondJson(net::Exchange& exchange, int status, std::string body) {
  net::ResponseHead head;
  head.status = status;
  head.headers.Add("content-type", "application/json");
  co_return co_await exchange.Respond(std::move(head), body);
}

net::Task<Status> RespondError(net::Exchange& exchange, Error error, std::string request_id,
                               int status) {
  if (status == 0) status = ToWire(error.code).http_status;
  const std::string body = ErrorBody(error);
  net::ResponseHead head;
  head.status = status;
  head.headers.Add("content-type", "application/json");
  if (!request_id.empty()) head.headers.Add("x-request-id", request_id);
  if (status == 429 || status == 503) {
    head.headers.Add("retry-after", "5");
    head.headers.Add("retry-after-ms", "5000");
  }
  co_return co_await exchange.Respond(std::move(head), body);
}

}  // namespace hidane::gateway
