// A request body of any shape: no crash, and a body that was accepted gives the same identity
// after the usage splice and when it is read again from a copy without padding.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "prompt/body_reader.h"

using hidane::prompt::Api;
using hidane::prompt::Body;
using hidane::prompt::BodyReader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto api = static_cast<Api>(data[0] & 3);
  std::string json(reinterpret_cast<const char*>(data + 1), size - 1);
  static BodyReader reader;
  Body body;
  if (!reader.Read(api, json, json.size(), {}, body)) return 0;
  if (body.ask_usage) {
    json.replace(body.ask_usage->offset, body.ask_usage->length, body.ask_usage->text);
  }
  const size_t length = json.size();
  json.append(BodyReader::kPadding, '"');
  Body again;
  if (!reader.Read(api, {json.data(), length}, json.size(), {}, again)) std::abort();
  if (again.identity.chain != body.identity.chain || again.ask_usage) std::abort();
  return 0;
}
