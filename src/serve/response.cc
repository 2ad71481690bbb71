#include "serve/response.h"

#include <algorithm>
#include <utility>

#include "base/error_map.h"
#include "base/json_out.h"

namespace hidane::serve {
namespace {

std::string Event(std::string_view json) {
  std::string out = "data: ";
  out += json;
  out += "\n\n";
  return out;
}

void WriteUsage(JsonWriter& w, const Usage& usage) {
  w.BeginObject()
      .Field("prompt_tokens", usage.prompt_tokens)
      .Field("completion_tokens", usage.completion_tokens)
      .Field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  w.Key("prompt_tokens_details").BeginObject().Field("cached_tokens", usage.cached_tokens);
  w.EndObject().EndObject();
}

uint64_t CodePoints(std::string_view text) {
  return static_cast<uint64_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

void WriteChatToken(JsonWriter& w, const text::TextModel& text, engine::TokenLogprob t) {
  const std::string_view bytes = text.TokenBytes(t.id);
  w.Field("token", bytes).Field("logprob", static_cast<double>(t.logprob));
  w.Key("bytes").BeginArray();
  for (const char c : bytes) w.Number(static_cast<uint8_t>(c));
  w.EndArray();
}

void WriteChatLogprobs(JsonWriter& w, const text::TextModel& text,
                       std::span<const ScoredToken> scored) {
  w.BeginObject().Key("content").BeginArray();
  for (const ScoredToken& s : scored) {
    w.BeginObject();
    WriteChatToken(w, text, s.chosen);
    w.Key("top_logprobs").BeginArray();
    for (const engine::TokenLogprob t : s.top) {
      w.BeginObject();
      WriteChatToken(w, text, t);
      w.EndObject();
    }
    w.EndArray().EndObject();
  }
  w.EndArray().EndObject();
}

void WriteCompletionLogprobs(JsonWriter& w, const text::TextModel& text,
                             std::span<const ScoredToken> scored, uint64_t& text_offset) {
  w.BeginObject().Key("tokens").BeginArray();
  for (const ScoredToken& s : scored) w.String(text.TokenBytes(s.chosen.id));
  w.EndArray().Key("token_logprobs").BeginArray();
  for (const ScoredToken& s : scored) w.Number(static_cast<double>(s.chosen.logprob));
  w.EndArray().Key("top_logprobs").BeginArray();
  for (const ScoredToken& s : scored) {
    w.BeginObject();
    for (const engine::TokenLogprob t : s.top) {
      w.Field(text.TokenBytes(t.id), static_cast<double>(t.logprob));
    }
    w.EndObject();
  }
  w.EndArray().Key("text_offset").BeginArray();
  for (const ScoredToken& s : scored) {
    w.Number(text_offset);
    text_offset += CodePoints(text.TokenBytes(s.chosen.id));
  }
  w.EndArray().EndObject();
}

}  // namespace

ResponseWriter::ResponseWriter(Identity identity, const text::TextModel& text, bool logprobs,
                               bool include_usage)
    : identity_(std::move(identity)),
      text_(text),
      logprobs_(logprobs),
      include_usage_(include_usage) {}

/// The members that every body and chunk has, around what its choices hold.
class ResponseWriter::Builder {
 public:
  Builder(ResponseWriter& owner, std::string_view object) : owner_(owner) {
    w.BeginObject()
        .Field("id", owner.identity_.id)
        .Field("object", object)
        .Field("created", owner.identity_.created_unix_s)
        .Field("model", owner.identity_.model);
  }

  void BeginChoice(uint32_t choice) { w.BeginObject().Field("index", choice); }

  void EndChoice(uint32_t choice, std::string_view finish_reason,
                 std::span<const ScoredToken> scored) {
    w.Key("logprobs");
    if (!owner_.logprobs_ || scored.empty()) {
      w.Null();
    } else if (owner_.chat()) {
      WriteChatLogprobs(w, owner_.text_, scored);
    } else {
      auto& offsets = owner_.text_offsets_;
      if (offsets.size() <= choice) offsets.resize(choice + 1);
      WriteCompletionLogprobs(w, owner_.text_, scored, offsets[choice]);
    }
    w.Key("finish_reason");
    finish_reason.empty() ? w.Null() : w.String(finish_reason);
    w.EndObject();
  }

  std::string Take() {
    w.EndObject();
    return w.Take();
  }

  JsonWriter w;

 private:
  ResponseWriter& owner_;
};

std::string ResponseWriter::Whole(std::span<const Choice> choices, const Usage& usage) {
  Builder b(*this, chat() ? "chat.completion" : "text_completion");
  b.w.Key("choices").BeginArray();
  for (uint32_t i = 0; i < choices.size(); ++i) {
    b.BeginChoice(i);
    if (chat()) {
      b.w.Key("message").BeginObject().Field("role", "assistant");
      b.w.Field("content", choices[i].text).EndObject();
    } else {
      b.w.Field("text", choices[i].text);
    }
    b.EndChoice(i, choices[i].finish_reason, choices[i].scored);
  }
  b.w.EndArray().Key("usage");
  WriteUsage(b.w, usage);
  return b.Take();
}

std::string ResponseWriter::Chunk(uint32_t choice, std::string_view delta_json,
                                  std::string_view answer, std::string_view finish_reason,
                                  std::span<const ScoredToken> scored) {
  Builder b(*this, chat() ? "chat.completion.chunk" : "text_completion");
  b.w.Key("choices").BeginArray();
  b.BeginChoice(choice);
  if (chat()) {
    b.w.Key("delta").Raw(delta_json);
  } else {
    b.w.Field("text", answer);
  }
  b.EndChoice(choice, finish_reason, scored);
  b.w.EndArray();
  if (include_usage_) b.w.Key("usage").Null();
  return Event(b.Take());
}

std::string ResponseWriter::First(uint32_t choice) {
  return Chunk(choice, R"({"role":"assistant","content":""})", {}, {}, {});
}

std::string ResponseWriter::Delta(uint32_t choice, std::string_view answer,
                                  std::span<const ScoredToken> scored) {
  JsonWriter delta;
  if (chat()) delta.BeginObject().Field("content", answer).EndObject();
  return Chunk(choice, delta.str(), answer, {}, scored);
}

std::string ResponseWriter::Last(uint32_t choice, std::string_view finish_reason) {
  return Chunk(choice, "{}", {}, finish_reason, {});
}

std::string ResponseWriter::UsageEvent(const Usage& usage) {
  Builder b(*this, chat() ? "chat.completion.chunk" : "text_completion");
  b.w.Key("choices").BeginArray().EndArray().Key("usage");
  WriteUsage(b.w, usage);
  return Event(b.Take());
}

std::string ResponseWriter::Done() {
  return Event("[DONE]");
}
std::string ResponseWriter::ErrorEvent(const Error& error) {
  return Event(ErrorBody(error));
}

std::string ModelsBody(std::string_view model_id, uint32_t context_length, int64_t created_unix_s) {
  JsonWriter w;
  w.BeginObject().Field("object", "list").Key("data").BeginArray();
  w.BeginObject()
      .Field("id", model_id)
      .Field("object", "model")
      .Field("created", created_unix_s)
      .Field("owned_by", "hidane")
      .Field("max_model_len", context_length)
      .EndObject();
  w.EndArray().EndObject();
  return w.Take();
}

std::string KvBody(const engine::KvMap& map) {
  JsonWriter w;
  w.BeginObject()
      .Field("block_size", map.block_size)
      .Field("blocks", map.blocks)
      .Field("blocks_free", map.blocks_free)
      .Field("blocks_published", map.blocks_published)
      .Key("sequences")
      .BeginArray();
  for (const engine::KvSequence& seq : map.sequences) {
    w.BeginObject()
        .Field("id", seq.id.value())
        .Field("policy", seq.policy)
        .Field("running", seq.running)
        .Field("prompt_tokens", seq.prompt_tokens)
        .Field("tokens", seq.tokens)
        .Field("slots", seq.slots)
        .Field("blocks", seq.blocks)
        .Field("blocks_unmoved", seq.blocks_unmoved)
        .Key("live")
        .BeginArray();
    for (const uint8_t percent : seq.live) w.Number(uint32_t{percent});
    w.EndArray().EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

std::string TokenizeBody(std::span<const TokenId> tokens, uint32_t context_length) {
  JsonWriter w;
  w.BeginObject().Field("count", tokens.size()).Field("max_model_len", context_length);
  w.Key("tokens").BeginArray();
  for (const TokenId id : tokens) w.Number(id);
  w.EndArray().EndObject();
  return w.Take();
}

std::string DetokenizeBody(std::string_view text) {
  JsonWriter w;
  w.BeginObject().Field("prompt", text).EndObject();
  return w.Take();
}

}  // namespace hidane::serve
