#include "prompt/body_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "prompt/canonical.h"
#include "prompt/chain.h"
#include "prompt/message_walk.h"

namespace hidane::prompt {
namespace {

namespace od = simdjson::ondemand;

static_assert(BodyReader::kPadding >= simdjson::SIMDJSON_PADDING);
static_assert(BodyReader::kPadding >= kCanonicalPadding);

// Where a completions prompt counts as a conversation of its own: it has no messages to tell.
constexpr uint32_t kCompletionHeadBlocks = 4;

// Parts of the prompt, in stream order where tools come first.
enum Lane : uint8_t { kTemplate, kTemplateArgs, kDocuments, kTools, kFunctions, kSystem, kTurns };
constexpr size_t kLanes = kTurns + 1;

enum class Field : uint8_t {
  kModel,
  kMessages,
  kPrompt,
  kSystemText,
  kLaneValue,
  kStream,
  kStreamOptions,
  kMaxTokens,
  kN,
};

constexpr uint8_t Bit(Api api) {
  return static_cast<uint8_t>(1u << static_cast<int>(api));
}
constexpr uint8_t kAny = 0xf;
constexpr uint8_t kOpenAi = Bit(Api::kChat) | Bit(Api::kCompletions);

struct KnownField {
  const char* name;
  Field field;
  uint8_t apis;
  Lane lane = kTurns;  // of kLaneValue
};
constexpr KnownField kFields[] = {
    {"model", Field::kModel, kAny},
    {"messages", Field::kMessages, Bit(Api::kChat) | Bit(Api::kMessages)},
    {"prompt", Field::kPrompt, Bit(Api::kCompletions)},
    {"input", Field::kPrompt, Bit(Api::kResponses)},
    {"instructions", Field::kSystemText, Bit(Api::kResponses)},
    {"system", Field::kSystemText, Bit(Api::kMessages)},
    {"tools", Field::kLaneValue, kAny, kTools},
    {"functions", Field::kLaneValue, Bit(Api::kChat), kFunctions},
    {"documents", Field::kLaneValue, Bit(Api::kChat), kDocuments},
    {"chat_template", Field::kLaneValue, Bit(Api::kChat), kTemplate},
    {"chat_template_kwargs", Field::kLaneValue, Bit(Api::kChat), kTemplateArgs},
    {"stream", Field::kStream, kAny},
    {"stream_options", Field::kStreamOptions, kOpenAi},
    {"max_tokens", Field::kMaxTokens, kAny},
    {"max_completion_tokens", Field::kMaxTokens, kAny},
    {"max_output_tokens", Field::kMaxTokens, kAny},
    {"n", Field::kN, kOpenAi},
};

const char* PromptField(Api api) {
  switch (api) {
    case Api::kChat:
    case Api::kMessages:
      return "messages";
    case Api::kCompletions:
      return "prompt";
    case Api::kResponses:
      return "input";
  }
  return "";
}

struct Part {
  size_t begin;
  size_t end;
  bool message;
  bool user;
};

tl::unexpected<Error> WrongType(const char* name, std::string_view wanted) {
  return Fail(Code::kInvalidArgument, std::string(name) + " must be " + std::string(wanted), name);
}

Status FromSimdjson(simdjson::error_code error) {
  if (error == simdjson::SUCCESS) return {};
  const Code code = error == simdjson::CAPACITY ? Code::kTooLarge : Code::kInvalidArgument;
  return Fail(code, std::string("body is not a JSON object: ") + simdjson::error_message(error));
}

Result<bool> ReadBool(const char* name, JsonValue& value) {
  bool b = false;
  if (!IsNull(value) && value.get_bool().get(b)) return WrongType(name, "true or false");
  return b;
}

Result<uint32_t> ReadCount(const char* name, JsonValue& value) {
  uint64_t count = 0;
  if (value.get_uint64().get(count)) return WrongType(name, "a whole number");
  return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
}

bool IsBlank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::string_view TrimEnd(std::string_view text) {
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

struct BodyReader::Impl {
  od::parser parser;
  std::vector<char> padded;  // bodies that came without padding
  CanonicalBuffer key;       // the key under way, in canonical spelling
  CanonicalBuffer text;      // all parts, in the body's order
  std::array<std::vector<Part>, kLanes> lanes;

  // Of the body under way.
  Api api{};
  std::string_view json;
  Body* out = nullptr;
  uint32_t seen = 0;  // bit per entry of kFields
  std::optional<Splice> options_splice;

  void Start(Api of, std::string_view body, size_t capacity, Body& into);
  Status ReadFields();
  Status ReadField(const KnownField& known, JsonValue& value);
  Status ReadMessages(const char* name, JsonValue& value);
  Status ReadPrompt(const char* name, JsonValue& value);
  Status ReadSystem(JsonValue& value);
  Status ReadStreamOptions(const char* name, JsonValue& value);
  void AddPart(Lane lane, size_t begin, bool message, bool user);
  void AddTurn(char frame, std::string_view raw);
  void BuildChain(const ReadOptions& options);
  void PlanUsage();

  size_t OffsetOf(std::string_view raw) const { return raw.data() - json.data(); }
  bool Saw(std::string_view name) const;
};

void BodyReader::Impl::Start(Api of, std::string_view body, size_t capacity, Body& into) {
  if (capacity < body.size() + kPadding) {
    padded.resize(std::max(padded.size(), body.size() + kPadding));
    std::copy(body.begin(), body.end(), padded.begin());
    body = {padded.data(), body.size()};
  }
  api = of;
  json = body;
  out = &into;
  seen = 0;
  options_splice.reset();
  text.Clear();
  for (auto& lane : lanes) lane.clear();
  Identity identity = std::move(into.identity);
  identity.Clear();
  into = Body{};
  into.identity = std::move(identity);
}

void BodyReader::Impl::AddPart(Lane lane, size_t begin, bool message, bool user) {
  lanes[lane].push_back({begin, text.size(), message, user});
}

void BodyReader::Impl::AddTurn(char frame, std::string_view raw) {
  const size_t begin = text.size();
  text.AppendRaw(frame);
  text.AppendJson(raw);
  AddPart(kTurns, begin, true, true);
}

Status BodyReader::Impl::ReadMessages(const char* name, JsonValue& value) {
  od::array items;
  if (value.get_array().get(items)) return WrongType(name, "an array");
  for (auto item : items) {
    od::object message;
    if (const auto error = item.get_object().get(message)) {
      if (error == simdjson::INCORRECT_TYPE) return WrongType(name, "an array of objects");
      return FromSimdjson(error);
    }
    const size_t begin = text.size();
    Role role{};
    text.AppendRaw(frame::kMessage);
    HIDANE_CHECK_OK(FromSimdjson(WalkMessage(message, text, role)));
    // The static prefix ends where the first message comes that isn't the system's.
    const bool system = role == Role::kSystem && lanes[kTurns].empty();
    AddPart(system ? kSystem : kTurns, begin, true, role == Role::kUser);
  }
  return {};
}

// A string, an array of strings, of token ids or of lists of them; `input` may hold messages.
Status BodyReader::Impl::ReadPrompt(const char* name, JsonValue& value) {
  const std::string_view token = value.raw_json_token();
  if (token.starts_with('"')) {
    AddTurn(frame::kMessage, token);
    return {};
  }
  std::string_view rest = json.substr(OffsetOf(token));
  if (!rest.starts_with('[')) return WrongType(name, "a string or an array");
  do rest.remove_prefix(1);
  while (!rest.empty() && IsBlank(rest.front()));
  if (rest.starts_with('{')) return ReadMessages(name, value);

  od::array items;
  HIDANE_CHECK_OK(FromSimdjson(value.get_array().get(items)));
  if (rest.starts_with('"')) {
    for (auto entry : items) {
      JsonValue item;
      HIDANE_CHECK_OK(FromSimdjson(std::move(entry).get(item)));
      const std::string_view raw = item.raw_json_token();
      if (!raw.starts_with('"')) return WrongType(name, "an array of strings");
      AddTurn(frame::kMessage, raw);
    }
    return {};
  }
  std::string_view raw;
  HIDANE_CHECK_OK(FromSimdjson(items.raw_json().get(raw)));
  out->identity.tokens = static_cast<uint32_t>(std::count(raw.begin(), raw.end(), ',') + 1);
  AddTurn(frame::kTokenIds, raw);
  return {};
}

Status BodyReader::Impl::ReadSystem(JsonValue& value) {
  if (IsNull(value)) return {};
  const size_t begin = text.size();
  text.AppendRaw(frame::kMessage);
  HIDANE_CHECK_OK(FromSimdjson(WalkContent(value, text)));
  AddPart(kSystem, begin, false, false);
  return {};
}

Status BodyReader::Impl::ReadStreamOptions(const char* name, JsonValue& value) {
  const std::string_view token = TrimEnd(value.raw_json_token());
  const size_t at = OffsetOf(token);
  if (IsNull(value)) {
    options_splice = Splice{at, token.size(), R"({"include_usage":true})"};
    return {};
  }
  od::object options;
  if (value.get_object().get(options)) return WrongType(name, "an object");
  bool empty = true;
  for (auto entry : options) {
    od::field field;
    HIDANE_CHECK_OK(FromSimdjson(std::move(entry).get(field)));
    empty = false;
    key.Clear();
    key.AppendJson(RawKey(field));
    if (key.view() != "include_usage") continue;
    const std::string_view flag = TrimEnd(field.value().raw_json_token());
    HIDANE_TRY(out->include_usage, ReadBool("stream_options.include_usage", field.value()));
    options_splice = Splice{OffsetOf(flag), flag.size(), "true"};
  }
  if (!options_splice) {
    options_splice =
        Splice{at + 1, 0, empty ? R"("include_usage":true)" : R"("include_usage":true,)"};
  }
  return {};
}

Status BodyReader::Impl::ReadField(const KnownField& known, JsonValue& value) {
  const char* const name = known.name;
  switch (known.field) {
    case Field::kModel: {
      std::string_view model;
      if (value.get_string().get(model)) return WrongType(name, "a string");
      out->identity.model = model;
      return {};
    }
    case Field::kMessages:
      return ReadMessages(name, value);
    case Field::kPrompt:
      return ReadPrompt(name, value);
    case Field::kSystemText:
      return ReadSystem(value);
    case Field::kLaneValue: {
      if (IsNull(value)) return {};
      std::string_view raw;
      HIDANE_CHECK_OK(FromSimdjson(RawJson(value, raw)));
      if (known.lane == kTools && !raw.starts_with('[')) return WrongType(name, "an array");
      const size_t begin = text.size();
      text.AppendRaw(static_cast<char>(frame::kLane + known.lane));
      text.AppendJson(raw);
      AddPart(known.lane, begin, false, false);
      return {};
    }
    case Field::kStream: {
      HIDANE_TRY(out->stream, ReadBool(name, value));
      return {};
    }
    case Field::kStreamOptions:
      return ReadStreamOptions(name, value);
    case Field::kMaxTokens: {
      if (IsNull(value)) return {};
      HIDANE_TRY(out->max_tokens, ReadCount(name, value));
      return {};
    }
    case Field::kN: {
      if (IsNull(value)) return {};
      HIDANE_TRY(out->n, ReadCount(name, value));
      return out->n > 0 ? Status() : WrongType(name, "at least 1");
    }
  }
  return {};
}

bool BodyReader::Impl::Saw(std::string_view name) const {
  const auto at = std::ranges::find(kFields, name, &KnownField::name);
  return seen >> (at - kFields) & 1;
}

Status BodyReader::Impl::ReadFields() {
  od::document document;
  od::object fields;
  const simdjson::padded_string_view padded_json(json.data(), json.size(), json.size() + kPadding);
  HIDANE_CHECK_OK(FromSimdjson(parser.iterate(padded_json).get(document)));
  HIDANE_CHECK_OK(FromSimdjson(document.get_object().get(fields)));
  for (auto entry : fields) {
    od::field field;
    HIDANE_CHECK_OK(FromSimdjson(std::move(entry).get(field)));
    key.Clear();
    key.AppendJson(RawKey(field));
    const auto known = std::ranges::find_if(kFields, [&](const KnownField& f) {
      return f.name == key.view() && (f.apis & Bit(api)) != 0;
    });
    if (known == std::end(kFields)) continue;
    const uint32_t bit = 1u << (known - kFields);
    if ((seen & bit) != 0) {
      return Fail(Code::kInvalidArgument, std::string(known->name) + " is given twice",
                  known->name);
    }
    seen |= bit;
    HIDANE_CHECK_OK(ReadField(*known, field.value()));
  }
  const char* rest = nullptr;
  if (document.current_location().get(rest) == simdjson::SUCCESS) {
    return FromSimdjson(simdjson::TRAILING_CONTENT);
  }
  for (const char* name : {"model", PromptField(api)}) {
    if (!Saw(name)) {
      return Fail(Code::kInvalidArgument, std::string(name) + " is missing", name);
    }
  }
  return {};
}

void BodyReader::Impl::BuildChain(const ReadOptions& options) {
  Identity& id = out->identity;
  id.root = ChainRoot(options.salt, id.model);
  bool user_seen = false;
  const auto add_lane = [&](Lane lane) {
    for (const Part& part : lanes[lane]) {
      AppendPart(text.view().substr(part.begin, part.end - part.begin), id);
      const auto blocks = static_cast<uint32_t>(id.size());
      if (part.message) id.message_ends.push_back(blocks);
      if (lane != kTurns) continue;
      // Before any user message the first turn stands for the conversation.
      if (id.k2_end == 0 || (part.user && !user_seen)) id.k2_end = blocks;
      user_seen |= part.user;
    }
  };
  for (const Lane lane : {kTemplate, kTemplateArgs, kDocuments}) add_lane(lane);
  const bool system_first = options.order == PartOrder::kSystemFirst;
  if (system_first) add_lane(kSystem);
  add_lane(kTools);
  add_lane(kFunctions);
  id.tools_end = static_cast<uint32_t>(id.size());
  if (!system_first) add_lane(kSystem);
  id.k1_end = static_cast<uint32_t>(id.size());
  add_lane(kTurns);
  if (id.k2_end == 0) id.k2_end = id.k1_end;
  if (api == Api::kCompletions) id.k2_end = std::min(id.k2_end, id.k1_end + kCompletionHeadBlocks);
}

void BodyReader::Impl::PlanUsage() {
  if (!out->stream || out->include_usage || (kOpenAi & Bit(api)) == 0) return;
  out->ask_usage = options_splice;
  if (!out->ask_usage) {
    out->ask_usage = Splice{json.find('{') + 1, 0, R"("stream_options":{"include_usage":true},)"};
  }
}

BodyReader::BodyReader() : impl_(std::make_unique<Impl>()) {}
BodyReader::~BodyReader() = default;
BodyReader::BodyReader(BodyReader&&) noexcept = default;
BodyReader& BodyReader::operator=(BodyReader&&) noexcept = default;

Status BodyReader::Read(Api api, std::string_view body, size_t capacity, const ReadOptions& options,
                        Body& out) {
  impl_->Start(api, body, capacity, out);
  HIDANE_CHECK_OK(impl_->ReadFields());
  impl_->BuildChain(options);
  impl_->PlanUsage();
  return {};
}

}  // namespace hidane::prompt
