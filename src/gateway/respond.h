#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/server.h"

namespace hidane::gateway {

/// Answers with a JSON document. The caller's strings are taken over.
net::Task<Status> RespondJson(net::Exchange& exchange, int status, std::string body);

/// Answers with Hidane's error form; 429 and 503 say when to come back. `status` other than 0
/// stands in for that of the error's code.
net::Task<Status> RespondError(net::Exchange& exchange, Error error, std::string request_id,
                               int status = 0);

}  // namespace hidane::gateway
