#include "gateway/models.h"

#include <simdjson.h>

#include <map>

#include "base/json_out.h"

namespace hidane::gateway {
namespace {

constexpr size_t kModelsMax = 1'024;

/// `card` with its max_model_len replaced.
std::string WithLength(const ModelCard& card, int64_t max_model_len) {
  if (card.max_model_len == max_model_len) return card.json;
  simdjson::dom::parser parser;
  simdjson::dom::object fields;
  if (parser.parse(card.json).get(fields) != simdjson::SUCCESS) return card.json;
  JsonWriter w;
  w.BeginObject();
  for (const auto& [key, value] : fields) {
    w.Key(key);
    key == "max_model_len" ? w.Number(max_model_len) : w.Raw(simdjson::minify(value));
  }
  w.EndObject();
  return w.Take();
}

}  // namespace

Result<std::vector<ModelCard>> ParseModels(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::array data;
  if (parser.parse(json.data(), json.size())["data"].get(data) != simdjson::SUCCESS)
    return Fail(Code::kDataLoss, "/v1/models: no list of models");
  std::vector<ModelCard> cards;
  for (const simdjson::dom::element entry : data) {
    std::string_view id;
    if (entry["id"].get(id) != simdjson::SUCCESS || cards.size() == kModelsMax) continue;
    ModelCard card{std::string(id), simdjson::minify(entry), std::nullopt};
    int64_t length = 0;
    if (entry["max_model_len"].get(length) == simdjson::SUCCESS) card.max_model_len = length;
    cards.push_back(std::move(card));
  }
  return cards;
}

std::string MergeModels(const std::vector<std::vector<ModelCard>>& by_worker) {
  struct Merged {
    const ModelCard* first;
    std::optional<int64_t> length;
  };
  std::map<std::string_view, Merged> models;
  for (const auto& cards : by_worker) {
    for (const ModelCard& card : cards) {
      const auto [it, fresh] = models.try_emplace(card.id, Merged{&card, card.max_model_len});
      if (fresh || !card.max_model_len) continue;
      auto& length = it->second.length;
      length = length ? std::min(*length, *card.max_model_len) : *card.max_model_len;
    }
  }
  JsonWriter w;
  w.BeginObject().Field("object", "list").Key("data").BeginArray();
  for (const auto& [id, merged] : models)
    w.Raw(merged.length ? WithLength(*merged.first, *merged.length) : merged.first->json);
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace hidane::gateway
