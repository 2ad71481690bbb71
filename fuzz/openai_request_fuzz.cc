// Arbitrary bytes as the body of every endpoint: no crash, and what is accepted keeps the promises
// that the engine relies on.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "serve/request.h"

namespace {

using hidane::serve::ApiRequest;
using hidane::serve::Endpoint;

constexpr hidane::serve::RequestLimits kLimits{.vocab_size = 1000, .context_length = 8192};

bool Promised(const ApiRequest& r) {
  for (const auto id : r.tokens) {
    if (id < 0 || id >= 1000) return false;
  }
  for (const auto& stop : r.stop) {
    if (stop.empty() || stop.size() > hidane::serve::kStopBytesMax) return false;
  }
  const auto& s = r.sampling;
  return r.tokens.size() <= 8192 && r.stop.size() <= hidane::serve::kStopsMax &&
         r.max_tokens.value_or(1) >= 1 && s.temperature >= 0 && s.top_p > 0 && s.top_p <= 1 &&
         s.top_k >= 0 && r.top_logprobs <= hidane::serve::kTopLogprobsMax;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Endpoint endpoint :
       {Endpoint::kChat, Endpoint::kCompletion, Endpoint::kTokenize, Endpoint::kDetokenize}) {
    const auto request = ParseRequest(endpoint, body, kLimits);
    if (request && !Promised(*request)) __builtin_trap();
    if (!request && request.error().what.empty()) __builtin_trap();
  }
  return 0;
}
