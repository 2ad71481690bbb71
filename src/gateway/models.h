#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hidane::gateway {

/// One entry of an engine's `/v1/models`.
struct ModelCard {
  std::string id;
  std::string json;  ///< the whole entry, unknown fields included, minified
  std::optional<int64_t> max_model_len;
};

/// Reads the answer of `/v1/models`. kDataLoss if it isn't one. At most 1,024 entries are kept.
Result<std::vector<ModelCard>> ParseModels(std::string_view json);

/// One `/v1/models` answer for the whole fleet: each model once, by name; its entry is the first
/// worker's, with the smallest max_model_len of all that serve it. The order of the workers
/// changes nothing but which worker is first.
std::string MergeModels(const std::vector<std::vector<ModelCard>>& by_worker);

}  // namespace hidane::gateway
