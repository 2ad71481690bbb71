// Server-sent events: pieces must not matter, and no byte may be lost.
#include <cstdint>
#include <string>
#include <vector>

#include "net/sse.h"

namespace {

std::vector<std::string> Split(std::string_view in, size_t step) {
  hidane::net::SseSplitter splitter;
  std::vector<std::string> out;
  std::string all;
  for (size_t at = 0; at < in.size(); at += step) {
    const std::string piece(in.substr(at, step));
    splitter.Feed(piece);
    while (const auto event = splitter.Next()) {
      out.push_back(std::string(event->type) + '\0' + std::string(event->data));
      all += event->raw;
    }
  }
  all += splitter.pending();
  if (all != in) __builtin_trap();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  if (Split(in, 1 + size % 5) != Split(in, size + 1)) __builtin_trap();
  return 0;
}
