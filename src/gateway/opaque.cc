#include "gateway/opaque.h"

#include <simdjson.h>

namespace hidane::gateway {

std::string OpaqueModel(std::string_view body) {
  static thread_local simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  const simdjson::padded_string_view padded(body, body.size() + simdjson::SIMDJSON_PADDING);
  if (body.empty() || parser.iterate(padded).get(document) != simdjson::SUCCESS) return {};
  std::string_view model;
  if (document["model"].get_string().get(model) != simdjson::SUCCESS) return {};
  return std::string(model);
}

}  // namespace hidane::gateway
