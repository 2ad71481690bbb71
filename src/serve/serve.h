#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine.h"
#include "obs/metrics.h"
#include "text/text.h"

namespace hidane::serve {

struct ServeOptions {
  std::string listen = "127.0.0.1:8000";  ///< HOST:PORT; port 0 = any free one
  std::string model_id;                   ///< the name that /v1/models gives and requests may use
  size_t body_bytes_max = 8 << 20;        ///< a longer request body is 413
  uint32_t tokenizer_threads = 1;         ///< >= 1; long prompts are tokenized there
  uint32_t tokenizer_queue_max = 64;      ///< prompts waiting for those threads; more get 429
  Duration drain_max = std::chrono::seconds(30);         ///< then the answers still running are cut
  std::function<void(uint16_t port)> on_listening = {};  ///< called once connections are accepted
};

/// Serves the OpenAI API of one engine over HTTP on the calling thread until `stop` is requested
/// (by any thread), then drains: running answers finish, new connections are refused.
/// kInvalidArgument: `listen` is no address. kUnavailable: it can't be bound (it is named). The
/// references must outlive the call.
Status Run(const ServeOptions& options, engine::Engine& engine, const text::TextModel& text,
           obs::Registry& registry, std::stop_token stop);

}  // namespace hidane::serve
