#pragma once
#include <string_view>

#include "net/http.h"

namespace hidane::gateway {

/// The fields that an engine gets: the client's, without its credentials (an engine gets its own
/// or none), without what only a trusted proxy may say, without names that some server would take
/// for another (`_`). `plain`: the answer must come unencoded, because it will be looked into.
net::Headers HeadersForEngine(const net::Headers& from_client, std::string_view engine_key,
                              std::string_view request_id, bool plain);

/// The fields that a client gets: the engine's, without what names the engine or its software.
net::Headers HeadersForClient(const net::Headers& from_engine);

bool IsEventStream(const net::Headers& headers);

/// Whether a client's `x-request-id` can be taken over: 1..128 of [A-Za-z0-9._-].
bool IsRequestId(std::string_view text);

}  // namespace hidane::gateway
