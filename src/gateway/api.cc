#include "gateway/api.h"

namespace hidane::gateway {

std::optional<prompt::Api> ApiOf(std::string_view path) {
  if (path == "/v1/chat/completions") return prompt::Api::kChat;
  if (path == "/v1/completions") return prompt::Api::kCompletions;
  if (path == "/v1/responses" || path == "/v1/embeddings") return prompt::Api::kResponses;
  if (path == "/v1/messages") return prompt::Api::kMessages;
  return std::nullopt;
}

prompt::ReadOptions ReadOptionsOf(const Config& config) {
  prompt::ReadOptions options;
  if (config.prompt_part_order() == "system_first") options.order = prompt::PartOrder::kSystemFirst;
  return options;
}

}  // namespace hidane::gateway
