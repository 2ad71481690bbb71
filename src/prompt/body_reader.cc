#include "prompt/body_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>
#include <vector>

#include "prompt/body_fields.h"
#include "prompt/canonical.h"
#include "prompt/chain.h"
#include "prompt/json_cursor.h"
#include "prompt/message_walk.h"

namespace hidane::prompt {
namespace {

static_assert(BodyReader::kPadding >= simdjson::SIMDJSON_PADDING);
static_assert(BodyReader::kPadding >= kCanonicalPadding);

// Where a completions prompt counts as a conversation of its own: it has no messages to tell.
constexpr uint32_t kCompletionHeadBlocks = 4;

struct Part {
  size_t begin;
  size_t end;
  bool message;
  bool user;
};

tl::unexpected<Error> WrongType(const char* name, std::string_view wanted) {
  return Fail(Code::kInvalidArgument, std::string(name) + " must be " + std::string(wanted), name);
}

Result<bool> ReadBool(const char* name, std::string_view token) {
  if (token != "true" && token != "false" && token != "null")
    return WrongType(name, "true or false");
  return token == "true";
}

Result<uint32_t> ReadCount(const char* name, std::string_view token) {
  uint64_t count = 0;
  const auto [rest, error] = std::from_chars(token.data(), token.data() + token.size(), count);
  if (error != std::errc() || rest != token.data() + token.size())
    return WrongType(name, "a whole number");
  return static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
}

}  // namespace

struct BodyReader::Impl {
  simdjson::ondemand::parser parser;  // of a string: its value behind the escapes
  std::vector<char> padded;           // bodies that came without padding
  CanonicalBuffer text;               // all parts, in the body's order
  std::array<std::vector<Part>, kLanes> lanes;

  // Of the body under way.
  Api api{};
  std::string_view json;
  Body* out = nullptr;
  uint32_t seen = 0;  // bit per entry of kFields
  std::optional<Splice> options_splice;

  void Start(Api of, std::string_view body, size_t capacity, Body& into);
  Status ReadFields();
  Status ReadField(const KnownField& known, JsonCursor& at);
  Status ReadSmallField(const KnownField& known, std::string_view token);
  Status ReadModel(std::string_view token);
  Status ReadMessages(const char* name, JsonCursor& at);
  Status ReadPrompt(const char* name, JsonCursor& at);
  void ReadSystem(JsonCursor& at);
  Status ReadStreamOptions(const char* name, JsonCursor& at);
  std::string_view ReadKey(JsonCursor& at);
  std::string_view ReadValue(JsonCursor& at);
  void AddPart(Lane lane, size_t begin, bool message, bool user);
  void AddTurn(char frame, JsonCursor& at);
  void BuildChain(const ReadOptions& options);
  void PlanUsage();

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

void BodyReader::Impl::AddTurn(char frame, JsonCursor& at) {
  const size_t begin = text.size();
  text.AppendRaw(frame);
  at.Copy(text);
  AddPart(kTurns, begin, true, true);
}

// A key without its quotes. It lies behind `text` until something is appended.
std::string_view BodyReader::Impl::ReadKey(JsonCursor& at) {
  const size_t begin = text.size();
  at.CopyKey(text);
  const std::string_view key = text.view(begin);
  text.Truncate(begin);
  return key.size() < 2 ? std::string_view() : key.substr(1, key.size() - 2);
}

// A value that is no part of the prompt; lies where a key does.
std::string_view BodyReader::Impl::ReadValue(JsonCursor& at) {
  const size_t begin = text.size();
  at.Copy(text);
  const std::string_view value = text.view(begin);
  text.Truncate(begin);
  return value;
}

Status BodyReader::Impl::ReadMessages(const char* name, JsonCursor& at) {
  if (at.Peek() != '[') return WrongType(name, "an array");
  for (bool more = at.Enter('['); more; more = at.Next(']')) {
    if (at.Peek() != '{') return WrongType(name, "an array of objects");
    const size_t begin = text.size();
    text.AppendRaw(frame::kMessage);
    const Role role = WalkMessage(at, text);
    // The static prefix ends where the first message comes that isn't the system's.
    const bool system = role == Role::kSystem && lanes[kTurns].empty();
    AddPart(system ? kSystem : kTurns, begin, true, role == Role::kUser);
  }
  return {};
}

// A string, an array of strings, of token ids or of lists of them; `input` may hold messages.
Status BodyReader::Impl::ReadPrompt(const char* name, JsonCursor& at) {
  if (at.Peek() == '"') {
    AddTurn(frame::kMessage, at);
    return {};
  }
  if (at.Peek() != '[') return WrongType(name, "a string or an array");
  JsonCursor ahead = at;
  const char first = ahead.Enter('[') ? ahead.Peek() : 0;
  if (first == '{') return ReadMessages(name, at);
  if (first != '"') {
    const size_t begin = text.size();
    AddTurn(frame::kTokenIds, at);
    const std::string_view ids = text.view(begin);
    out->identity.tokens = static_cast<uint32_t>(std::count(ids.begin(), ids.end(), ',') + 1);
    return {};
  }
  for (bool more = at.Enter('['); more; more = at.Next(']')) {
    if (at.Peek() != '"') return WrongType(name, "an array of strings");
    AddTurn(frame::kMessage, at);
  }
  return {};
}

void BodyReader::Impl::ReadSystem(JsonCursor& at) {
  const size_t begin = text.size();
  text.AppendRaw(frame::kMessage);
  WalkContent(at, text);
  AddPart(kSystem, begin, false, false);
}

Status BodyReader::Impl::ReadStreamOptions(const char* name, JsonCursor& at) {
  const bool null = at.PeekNull();
  const size_t begin = at.offset();
  if (null) {
    static_cast<void>(ReadValue(at));
    options_splice = Splice{begin, at.offset() - begin, R"({"include_usage":true})"};
    return {};
  }
  if (at.Peek() != '{') return WrongType(name, "an object");
  bool empty = true;
  for (bool more = at.Enter('{'); more; more = at.Next('}')) {
    empty = false;
    const bool ours = ReadKey(at) == "include_usage";
    static_cast<void>(at.Peek());
    const size_t flag = at.offset();
    const std::string_view token = ReadValue(at);
    if (!ours) continue;
    HIDANE_TRY(out->include_usage, ReadBool("stream_options.include_usage", token));
    options_splice = Splice{flag, at.offset() - flag, "true"};
  }
  if (!options_splice) {
    options_splice =
        Splice{begin + 1, 0, empty ? R"("include_usage":true)" : R"("include_usage":true,)"};
  }
  return {};
}

Status BodyReader::Impl::ReadModel(std::string_view token) {
  simdjson::ondemand::document document;
  std::string_view model;
  const size_t capacity = token.size() + kCanonicalPadding;
  if (parser.iterate(token.data(), token.size(), capacity).get(document) ||
      document.get_string().get(model))
    return WrongType("model", "a string");
  out->identity.model = model;
  return {};
}

Status BodyReader::Impl::ReadSmallField(const KnownField& known, std::string_view token) {
  const char* const name = known.name;
  if (known.field == Field::kModel) return ReadModel(token);
  if (known.field == Field::kStream) {
    HIDANE_TRY(out->stream, ReadBool(name, token));
    return {};
  }
  if (token == "null") return {};
  if (known.field == Field::kMaxTokens) {
    HIDANE_TRY(out->max_tokens, ReadCount(name, token));
    return {};
  }
  HIDANE_TRY(out->n, ReadCount(name, token));
  return out->n > 0 ? Status() : WrongType(name, "at least 1");
}

Status BodyReader::Impl::ReadField(const KnownField& known, JsonCursor& at) {
  switch (known.field) {
    case Field::kMessages:
      return ReadMessages(known.name, at);
    case Field::kPrompt:
      return ReadPrompt(known.name, at);
    case Field::kStreamOptions:
      return ReadStreamOptions(known.name, at);
    case Field::kSystemText:
    case Field::kLaneValue: {
      if (at.PeekNull()) break;
      if (known.field == Field::kSystemText) {
        ReadSystem(at);
        return {};
      }
      if (known.lane == kTools && at.Peek() != '[') return WrongType(known.name, "an array");
      const size_t begin = text.size();
      text.AppendRaw(static_cast<char>(frame::kLane + known.lane));
      at.Copy(text);
      AddPart(known.lane, begin, false, false);
      return {};
    }
    default: {
      const std::string_view token = ReadValue(at);
      return token.empty() ? Status() : ReadSmallField(known, token);
    }
  }
  static_cast<void>(ReadValue(at));
  return {};
}

bool BodyReader::Impl::Saw(std::string_view name) const {
  const auto at = std::ranges::find(kFields, name, &KnownField::name);
  return seen >> (at - kFields) & 1;
}

Status BodyReader::Impl::ReadFields() {
  if (!simdjson::validate_utf8(json.data(), json.size()))
    return Fail(Code::kInvalidArgument, "body is not UTF-8");
  JsonCursor at(json);
  for (bool more = at.Enter('{'); more; more = at.Next('}')) {
    const std::string_view name = ReadKey(at);
    const auto known = std::ranges::find_if(
        kFields, [&](const KnownField& f) { return f.name == name && (f.apis & Bit(api)) != 0; });
    if (known == std::end(kFields)) {
      static_cast<void>(ReadValue(at));
      continue;
    }
    const uint32_t bit = 1u << (known - kFields);
    if ((seen & bit) != 0) {
      return Fail(Code::kInvalidArgument, std::string(known->name) + " is given twice",
                  known->name);
    }
    seen |= bit;
    const Status read = ReadField(*known, at);
    HIDANE_CHECK_OK(at.status());
    HIDANE_CHECK_OK(read);
  }
  HIDANE_CHECK_OK(at.status());
  if (!at.AtEnd()) return Fail(Code::kInvalidArgument, "body has bytes behind its JSON object");
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
  size_t parts = 0;
  for (const auto& lane : lanes) parts += lane.size();
  const size_t blocks_max = text.size() / kChainBlockBytes + parts;
  id.chain.reserve(blocks_max);
  id.ends.reserve(blocks_max);
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
