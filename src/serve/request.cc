#include "serve/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <limits>
#include <utility>

#include "serve/json_read.h"
#include "serve/kv_policy_read.h"

namespace hidane::serve {
namespace {

constexpr size_t kNameBytesMax = 256;  // of a model
constexpr size_t kSaltBytesMax = 1024;
constexpr size_t kStopTokensMax = 64;

struct Parse {
  const RequestLimits& limits;
  Endpoint endpoint;
  ApiRequest out;
  std::optional<uint32_t> best_of{};
  bool has_prompt = false;
  bool has_max_completion_tokens = false;
  bool has_stream_options = false;
  bool has_top_logprobs = false;
  bool no_tools = false;  // tool_choice
};

using Reader = Status (*)(Parse&, JsonValue, std::string_view name);

template <auto Read, class... Args>
Status Into(auto& member, JsonValue value, std::string_view name, Args... args) {
  HIDANE_TRY(auto read, Read(value, name, args...));
  member = std::move(read);
  return {};
}

Status ReadMaxTokens(Parse& p, JsonValue value, std::string_view name) {
  HIDANE_TRY(const int64_t n, ReadInt(value, name, 1, p.limits.context_length));
  const bool newer = name == "max_completion_tokens";
  if (newer || !p.has_max_completion_tokens) p.out.max_tokens = static_cast<uint32_t>(n);
  p.has_max_completion_tokens |= newer;
  return {};
}

// "text", ["text"], [1, 2] or [[1, 2]].
Status ReadPrompt(Parse& p, JsonValue value, std::string_view name) {
  namespace od = simdjson::ondemand;
  constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();
  const size_t tokens_max = p.limits.context_length;
  p.has_prompt = true;
  od::array array;
  if (value.get_array().get(array)) return Into<ReadString>(p.out.prompt, value, name, kNoLimit);
  od::json_type first = od::json_type::null;
  for (size_t i = 0; auto entry : array) {
    JsonValue element;
    od::json_type type;
    if (std::move(entry).get(element) || element.type().get(type)) {
      return Fail(BadField(name, "is not valid JSON"));
    }
    if (i == 0) first = type;
    if (i > 0 && first != od::json_type::number) {
      return Fail(BadField(name, "holds several prompts; one at a time"));
    }
    if (i == tokens_max) {
      return Fail(BadField(name, fmt::format("has more than {} tokens", tokens_max)));
    }
    if (first == od::json_type::array) {
      HIDANE_CHECK_OK(
          Into<ReadTokens>(p.out.tokens, element, name, p.limits.vocab_size, tokens_max));
    } else if (first == od::json_type::string) {
      HIDANE_CHECK_OK(Into<ReadString>(p.out.prompt, element, name, kNoLimit));
    } else {
      HIDANE_TRY(const int64_t id, ReadInt(element, name, 0, int64_t{p.limits.vocab_size} - 1));
      p.out.tokens.push_back(static_cast<TokenId>(id));
    }
    ++i;
  }
  if (p.out.tokens.empty() && first != od::json_type::string) {
    return Fail(BadField(name, "is empty"));
  }
  return {};
}

Status ReadStop(Parse& p, JsonValue value, std::string_view name) {
  const auto add = [&](JsonValue one) -> Status {
    HIDANE_TRY(auto stop, ReadString(one, name, kStopBytesMax));
    if (stop.empty()) return Fail(BadField(name, "holds an empty string"));
    if (p.out.stop.size() == kStopsMax) {
      return Fail(BadField(name, fmt::format("holds more than {} strings", kStopsMax)));
    }
    p.out.stop.push_back(std::move(stop));
    return {};
  };
  simdjson::ondemand::array array;
  if (value.get_array().get(array)) return add(value);
  for (auto entry : array) {
    JsonValue one;
    if (std::move(entry).get(one)) return Fail(BadField(name, "is not valid JSON"));
    HIDANE_CHECK_OK(add(one));
  }
  return {};
}

Status ReadStreamOptions(Parse& p, JsonValue value, std::string_view name) {
  simdjson::ondemand::object object;
  if (value.get_object().get(object)) return Fail(BadField(name, "is not an object"));
  p.has_stream_options = true;
  bool seen = false;
  for (auto entry : object) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(entry).get(field) || field.unescaped_key().get(key)) {
      return Fail(BadField(name, "is not valid JSON"));
    }
    if (key != "include_usage") {
      HIDANE_CHECK_OK(SkipChecked(field.value(), name));
      continue;
    }
    constexpr std::string_view kField = "stream_options.include_usage";
    if (std::exchange(seen, true)) return Fail(BadField(kField, "is given twice"));
    HIDANE_CHECK_OK(Into<ReadBool>(p.out.include_usage, field.value(), kField));
  }
  return {};
}

Status ReadLogprobs(Parse& p, JsonValue value, std::string_view name) {
  if (p.endpoint == Endpoint::kChat) return Into<ReadBool>(p.out.logprobs, value, name);
  HIDANE_TRY(const int64_t n, ReadInt(value, name, 0, kTopLogprobsMax));
  p.out.logprobs = true;
  p.out.top_logprobs = static_cast<uint32_t>(n);
  return {};
}

Status ReadCacheSalt(Parse& p, JsonValue value, std::string_view name) {
  HIDANE_CHECK_OK(Into<ReadString>(p.out.cache_salt, value, name, kSaltBytesMax));
  if (p.out.cache_salt.empty()) return Fail(BadField(name, "is empty"));
  return {};
}

Status ReadTopP(Parse& p, JsonValue value, std::string_view name) {
  HIDANE_CHECK_OK(Into<ReadNumber>(p.out.sampling.top_p, value, name, 0, 1));
  if (p.out.sampling.top_p <= 0) return Fail(BadField(name, "is not above 0"));
  return {};
}

Status ReadTopK(Parse& p, JsonValue value, std::string_view name) {
  HIDANE_TRY(const int64_t k, ReadInt(value, name, -1, p.limits.vocab_size));
  p.out.sampling.top_k = static_cast<int32_t>(std::max<int64_t>(k, 0));  // -1 is off too
  return {};
}

Status ReadSeed(Parse& p, JsonValue value, std::string_view name) {
  using Limits = std::numeric_limits<int64_t>;
  HIDANE_TRY(const int64_t seed, ReadInt(value, name, Limits::min(), Limits::max()));
  p.out.sampling.seed = static_cast<uint64_t>(seed);
  p.out.sampling.has_seed = true;
  return {};
}

Status ReadToolChoice(Parse& p, JsonValue value, std::string_view name) {
  std::string_view choice;
  if (value.get_string().get(choice) || (choice != "auto" && choice != "none")) {
    return Fail(BadField(name, "must be \"auto\" or \"none\": no call can be forced"));
  }
  p.no_tools = choice == "none";
  return {};
}

Status ReadResponseFormat(Parse&, JsonValue value, std::string_view name) {
  simdjson::ondemand::object object;
  std::string_view type;
  if (value.get_object().get(object) || object["type"].get(type) || type != "text") {
    return Fail(BadField(name, "must be {\"type\": \"text\"}: output can't be constrained"));
  }
  return {};
}

Status ReadEmptyObject(Parse&, JsonValue value, std::string_view name) {
  simdjson::ondemand::object object;
  bool empty = false;
  if (value.get_object().get(object) || object.is_empty().get(empty) || !empty) {
    return Fail(BadField(name, "is not supported unless empty"));
  }
  return {};
}

Status Refuse(Parse&, JsonValue, std::string_view name) {
  return Fail(BadField(name, "is not supported"));
}

/// A number that has no effect at `value`, the only one allowed.
template <int value>
Status OnlyNumber(Parse&, JsonValue v, std::string_view name) {
  HIDANE_TRY([[maybe_unused]] const double n, ReadNumber(v, name, value, value));
  return {};
}

Status OnlyFalse(Parse&, JsonValue v, std::string_view name) {
  HIDANE_TRY(const bool on, ReadBool(v, name));
  if (on) return Fail(BadField(name, "is not supported"));
  return {};
}

struct Field {
  std::string_view name;
  uint8_t endpoints;  // where it has a meaning
  Reader read;
};

constexpr uint8_t kChat = static_cast<uint8_t>(Endpoint::kChat);
constexpr uint8_t kCompletion = static_cast<uint8_t>(Endpoint::kCompletion);
constexpr uint8_t kTokenize = static_cast<uint8_t>(Endpoint::kTokenize);
constexpr uint8_t kDetokenize = static_cast<uint8_t>(Endpoint::kDetokenize);
constexpr uint8_t kRun = kChat | kCompletion;
constexpr uint8_t kAll = kRun | kTokenize | kDetokenize;

using V = JsonValue;
using N = std::string_view;

constexpr Field kFields[] = {
    {"model", kAll,
     [](Parse& p, V v, N n) { return Into<ReadString>(p.out.model, v, n, kNameBytesMax); }},
    // The prompt.
    {"messages", kChat | kTokenize,
     [](Parse& p, V v, N n) {
       p.has_prompt = true;
       return Into<ReadRawArray>(p.out.messages, v, n);
     }},
    {"tools", kChat | kTokenize,
     [](Parse& p, V v, N n) { return Into<ReadRawArray>(p.out.tools, v, n); }},
    {"tool_choice", kChat, ReadToolChoice},
    {"prompt", kCompletion | kTokenize, ReadPrompt},
    {"tokens", kDetokenize,
     [](Parse& p, V v, N n) {
       p.has_prompt = true;
       return Into<ReadTokens>(p.out.tokens, v, n, p.limits.vocab_size,
                               size_t{p.limits.context_length});
     }},
    {"add_generation_prompt", kChat | kTokenize,
     [](Parse& p, V v, N n) { return Into<ReadBool>(p.out.add_generation_prompt, v, n); }},
    {"add_special_tokens", kCompletion | kTokenize,
     [](Parse& p, V v, N n) { return Into<ReadBool>(p.out.add_special_tokens, v, n); }},
    // How much, and what of it comes back.
    {"max_tokens", kRun, ReadMaxTokens},
    {"max_completion_tokens", kChat, ReadMaxTokens},
    {"ignore_eos", kRun, [](Parse& p, V v, N n) { return Into<ReadBool>(p.out.ignore_eos, v, n); }},
    {"stop", kRun, ReadStop},
    {"stop_token_ids", kRun,
     [](Parse& p, V v, N n) {
       return Into<ReadTokens>(p.out.stop_token_ids, v, n, p.limits.vocab_size, kStopTokensMax);
     }},
    {"stream", kRun, [](Parse& p, V v, N n) { return Into<ReadBool>(p.out.stream, v, n); }},
    {"stream_options", kRun, ReadStreamOptions},
    {"logprobs", kRun, ReadLogprobs},
    {"top_logprobs", kChat,
     [](Parse& p, V v, N n) {
       p.has_top_logprobs = true;
       return Into<ReadInt>(p.out.top_logprobs, v, n, 0, kTopLogprobsMax);
     }},
    {"cache_salt", kRun, ReadCacheSalt},
    {"kv_policy", kRun,
     [](Parse& p, V v, N n) { return Into<ReadKvPolicy>(p.out.kv_policy, v, n); }},
    // Sampling.
    {"n", kRun, [](Parse& p, V v, N n) { return Into<ReadInt>(p.out.n, v, n, 1, kChoicesMax); }},
    {"best_of", kRun,
     [](Parse& p, V v, N n) { return Into<ReadInt>(p.best_of, v, n, 1, kChoicesMax); }},
    {"temperature", kRun,
     [](Parse& p, V v, N n) { return Into<ReadNumber>(p.out.sampling.temperature, v, n, 0, 2); }},
    {"top_p", kRun, ReadTopP},
    {"top_k", kRun, ReadTopK},
    {"seed", kRun, ReadSeed},
    // Known, without the effect they ask for.
    {"presence_penalty", kRun, OnlyNumber<0>},
    {"frequency_penalty", kRun, OnlyNumber<0>},
    {"repetition_penalty", kRun, OnlyNumber<1>},
    {"min_p", kRun, OnlyNumber<0>},
    {"min_tokens", kRun, OnlyNumber<0>},
    {"logit_bias", kRun, ReadEmptyObject},
    {"response_format", kRun, ReadResponseFormat},
    {"echo", kCompletion, OnlyFalse},
    {"use_beam_search", kRun, OnlyFalse},
    {"suffix", kCompletion, Refuse},
    {"functions", kChat, Refuse},
    {"function_call", kChat, Refuse},
    {"chat_template", kChat | kTokenize, Refuse},
    {"chat_template_kwargs", kChat | kTokenize, Refuse},
    {"prompt_embeds", kRun, Refuse},
};

Status ReadField(Parse& p, std::bitset<std::size(kFields)>& seen, std::string_view key, V value) {
  for (size_t i = 0; i < std::size(kFields); ++i) {
    const Field& field = kFields[i];
    if (field.name != key || (field.endpoints & static_cast<uint8_t>(p.endpoint)) == 0) continue;
    if (seen.test(i)) return Fail(BadField(field.name, "is given twice"));
    seen.set(i);
    if (IsNull(value)) return {};
    return field.read(p, value, field.name);
  }
  return SkipChecked(value, key);
}

/// What only the whole request can tell.
Status Finish(Parse& p) {
  const bool runs = (static_cast<uint8_t>(p.endpoint) & kRun) != 0;
  const auto has_no_element = [](std::string_view array) {
    return array.find_first_not_of("[] \t\r\n") == array.npos;
  };
  if (runs && p.out.model.empty()) return Fail(BadField("model", "is missing"));
  if (!p.has_prompt) {
    const bool chat = p.endpoint == Endpoint::kChat, ids = p.endpoint == Endpoint::kDetokenize;
    return Fail(BadField(chat ? "messages" : ids ? "tokens" : "prompt", "is missing"));
  }
  if (p.endpoint == Endpoint::kChat && has_no_element(p.out.messages)) {
    return Fail(BadField("messages", "is empty"));
  }
  if (p.best_of && *p.best_of != p.out.n) {
    return Fail(BadField(
        "best_of",
        fmt::format("is {}, and n {}: every answer that is made is given", *p.best_of, p.out.n)));
  }
  if (p.has_stream_options && !p.out.stream) {
    return Fail(BadField("stream_options", "needs stream"));
  }
  if (p.has_top_logprobs && p.out.top_logprobs > 0 && !p.out.logprobs) {
    return Fail(BadField("top_logprobs", "needs logprobs"));
  }
  if (p.no_tools || has_no_element(p.out.tools)) p.out.tools.clear();
  return {};
}

}  // namespace

Result<ApiRequest> ParseRequest(Endpoint endpoint, std::string_view body,
                                const RequestLimits& limits) {
  const auto broken = [] { return Fail(Code::kInvalidArgument, "the body is not a JSON object"); };
  const simdjson::padded_string padded(body);
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) return broken();
  Parse p{.limits = limits, .endpoint = endpoint, .out = {}};
  std::bitset<std::size(kFields)> seen;
  for (auto entry : object) {
    simdjson::ondemand::field field;
    std::string_view key;
    if (std::move(entry).get(field) || field.unescaped_key().get(key)) return broken();
    HIDANE_CHECK_OK(ReadField(p, seen, key, field.value()));
  }
  const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  if (!at_end) return broken();
  HIDANE_CHECK_OK(Finish(p));
  return std::move(p.out);
}

}  // namespace hidane::serve
