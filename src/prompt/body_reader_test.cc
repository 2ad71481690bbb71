#include "prompt/body_reader.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <string>
#include <vector>

#include "base/json_out.h"
#include "prompt/chain.h"
#include "prompt/prompt_test_util.h"

namespace hidane::prompt {
namespace {

const std::string kTools = R"([{"type":"function","function":{"name":"f","parameters":{"x":1}}}])";
const std::string kMessages =
    R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi あ/"},)"
    R"({"role":"assistant","content":"yes"},{"role":"user","content":"more"}])";

std::string Chat(const std::string& tools, const std::string& messages,
                 const std::string& more = "") {
  return R"({"model":"m","tools":)" + tools + R"(,"messages":)" + messages + more + "}";
}

size_t SharedBlocks(const Identity& a, const Identity& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a.chain[i] == b.chain[i]) ++i;
  return i;
}

TEST(BodyReaderTest, MarksStandAtTheEndOfToolsSystemAndFirstUserMessage) {
  const Identity id = MustRead(Chat(kTools, kMessages)).identity;
  EXPECT_EQ(id.model, "m");
  EXPECT_EQ(id.tools_end, 1u);
  EXPECT_EQ(id.k1_end, 2u);
  EXPECT_EQ(id.k2_end, 3u);
  EXPECT_EQ(id.size(), 5u);
  EXPECT_EQ(id.message_ends, (std::vector<uint32_t>{2, 3, 4, 5}));
  EXPECT_GT(id.bytes(), id.BytesAt(id.k1_end));
}

TEST(BodyReaderTest, WithoutToolsAndSystemTheStaticPrefixIsTheModelsRoot) {
  const Identity a = MustRead(Chat("null", R"([{"role":"user","content":"x"}])")).identity;
  const Identity b = MustRead(Chat("null", R"([{"role":"user","content":"y"}])")).identity;
  EXPECT_EQ(a.k1(), b.k1());
  EXPECT_EQ(a.k1(), a.root);
  EXPECT_NE(a.k2(), b.k2());
}

TEST(BodyReaderTest, SpellingOrderAndSamplingDontMatter) {
  const Identity plain = MustRead(Chat(kTools, kMessages)).identity;
  const std::string other =
      "\n{ \"temperature\": 0.7, \"messages\" : [ {\"role\": \"system\", \"content\":\"be "
      "br\\u0069ef\"},"
      R"({"r\u006fle":"user","content":"hi \u3042\/"},{"role":"assistant", "content":"yes"},)"
      R"( {"role":"user","content":"more"}], "seed":3, "stream":true,
      "tools": [ { "type" : "function", "function":{"name":"f","parameters":{"x":1 }}}], "mod\u0065l":"m" } )";
  const Identity id = MustRead(other).identity;
  EXPECT_EQ(id.chain, plain.chain);
  EXPECT_EQ(id.ends, plain.ends);
}

TEST(BodyReaderTest, AChangeShowsFromItsPositionOn) {
  const Identity base = MustRead(Chat(kTools, kMessages)).identity;
  std::string tools = kTools;
  tools.replace(tools.find("\"f\""), 3, "\"g\"");
  EXPECT_EQ(SharedBlocks(MustRead(Chat(tools, kMessages)).identity, base), 0u);
  std::string system = kMessages;
  system.replace(system.find("brief"), 5, "short");
  EXPECT_EQ(SharedBlocks(MustRead(Chat(kTools, system)).identity, base), base.tools_end);
  std::string last = kMessages;
  last.replace(last.find("more"), 4, "less");
  EXPECT_EQ(SharedBlocks(MustRead(Chat(kTools, last)).identity, base), base.size() - 1);
}

TEST(BodyReaderTest, PromptsThatBeginAlikeShareTheirBeginning) {
  const std::string head(1000, 'a');
  const auto id = [&](const std::string& tail) {
    return MustRead(R"({"model":"m","prompt":")" + head + tail + "\"}", Api::kCompletions).identity;
  };
  EXPECT_EQ(SharedBlocks(id("b"), id("c and more")), 3u);
}

TEST(BodyReaderTest, SaltAndModelGiveOtherChains) {
  const std::string json = Chat(kTools, kMessages);
  const Identity base = MustRead(json).identity;
  EXPECT_EQ(SharedBlocks(MustRead(json, Api::kChat, {.salt = 7}).identity, base), 0u);
  std::string other = json;
  other.replace(other.find("\"m\""), 3, "\"n\"");
  EXPECT_EQ(SharedBlocks(MustRead(other).identity, base), 0u);
}

TEST(BodyReaderTest, SystemFirstPutsTheSystemBlockBeforeTheTools) {
  const std::string json = Chat(kTools, kMessages);
  const Identity a = MustRead(json, Api::kChat, {.order = PartOrder::kSystemFirst}).identity;
  const Identity b =
      MustRead(Chat("[]", kMessages), Api::kChat, {.order = PartOrder::kSystemFirst}).identity;
  EXPECT_EQ(SharedBlocks(a, b), 1u);
}

TEST(BodyReaderTest, CacheControlMovesWithoutAChange) {
  const auto with = [](const char* a, const char* b) {
    return R"({"model":"m","max_tokens":9,"system":[{"type":"text","text":"s")" + std::string(a) +
           R"(}],"messages":[{"role":"user","content":[{"type":"text","text":"x")" + b + "}]}]}";
  };
  const char* const mark = R"(,"cache_control":{"type":"ephemeral"})";
  const Body a = MustRead(with(mark, ""), Api::kMessages);
  EXPECT_EQ(a.identity.chain, MustRead(with("", mark), Api::kMessages).identity.chain);
  EXPECT_EQ(a.max_tokens, 9u);
  EXPECT_EQ(a.identity.k1_end, 1u);
}

TEST(BodyReaderTest, ImagesEnterByDigest) {
  const auto with = [](const std::string& data) {
    return Chat("null",
                R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:)" +
                    data + R"("}}]}])");
  };
  const Identity a = MustRead(with(std::string(5000, 'A'))).identity;
  EXPECT_EQ(a.size(), 1u);
  EXPECT_NE(a.chain, MustRead(with(std::string(5000, 'B'))).identity.chain);
}

TEST(BodyReaderTest, CountsTokenIdsAndHashesThem) {
  const auto ids = [](const char* prompt) {
    return MustRead(R"({"model":"m","prompt":)" + std::string(prompt) + "}", Api::kCompletions);
  };
  EXPECT_EQ(ids("[1, 2,3]").identity.tokens, 3u);
  EXPECT_EQ(ids("[1, 2,3]").identity.chain, ids("[1,2,3]").identity.chain);
  EXPECT_NE(ids("[1,2,3]").identity.chain, ids("[1,23]").identity.chain);
  EXPECT_EQ(ids(R"(["a","b"])").identity.size(), 2u);
  EXPECT_EQ(ids(R"(["a","b"])").identity.tokens, 0u);
}

TEST(BodyReaderTest, ReadsResponsesInputsAndEmbeddings) {
  const Identity a =
      MustRead(R"({"model":"m","instructions":"be","input":"hi"})", Api::kResponses).identity;
  EXPECT_EQ(a.k1_end, 1u);
  EXPECT_EQ(a.k2_end, 2u);
  const Identity b =
      MustRead(
          R"({"model":"m","instructions":"be","input":[{"role":"user","content":"hi"},{"type":"x"}]})",
          Api::kResponses)
          .identity;
  EXPECT_EQ(b.k1_end, 1u);
  EXPECT_EQ(b.k2_end, 2u);
  EXPECT_EQ(b.size(), 3u);
  EXPECT_EQ(SharedBlocks(a, b), 1u);
  EXPECT_EQ(MustRead(R"({"model":"m","input":["a","b","c"]})", Api::kResponses).identity.size(),
            3u);
}

struct Ask {
  const char* more;
  const char* want;  // nullptr: no edit
};

TEST(BodyReaderTest, TheUsageSpliceAsksExactlyOnce) {
  const std::string base = R"({"model":"m","messages":[])";
  for (
      const Ask& ask : {
          Ask{"}", nullptr},
          Ask{R"(,"stream":false})", nullptr},
          Ask{R"(,"stream":null})", nullptr},
          Ask{R"(,"stream":true,"stream_options":{"include_usage":true}})", nullptr},
          Ask{R"(,"stream":true,"stream_options":{"include_usage":false , "x":1}})",
              R"({"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true , "x":1}})"},
          Ask{R"(,"stream":true,"stream_options":{"x":1}})",
              R"({"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true,"x":1}})"},
          Ask{R"(,"stream":true,"stream_options":{ }})",
              R"({"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true }})"},
          Ask{R"(,"stream_options":null ,"stream":true})",
              R"({"model":"m","messages":[],"stream_options":{"include_usage":true} ,"stream":true})"},
          Ask{R"(,"stream":true})",
              R"({"stream_options":{"include_usage":true},"model":"m","messages":[],"stream":true})"},
      }) {
    const std::string json = base + ask.more;
    const Body body = MustRead(json);
    ASSERT_EQ(body.ask_usage.has_value(), ask.want != nullptr) << json;
    if (!body.ask_usage) continue;
    const std::string edited = Apply(json, *body.ask_usage);
    EXPECT_EQ(edited, ask.want);
    const Body again = MustRead(edited);
    EXPECT_TRUE(again.include_usage);
    EXPECT_FALSE(again.ask_usage);
    EXPECT_EQ(again.identity.chain, body.identity.chain);
  }
}

TEST(BodyReaderTest, ReadsCountsAndTreatsNullAsAbsent) {
  const Body body = MustRead(R"({"model":"m","messages":[],"max_completion_tokens":7,"n":2})");
  EXPECT_EQ(body.max_tokens, 7u);
  EXPECT_EQ(body.n, 2u);
  EXPECT_FALSE(MustRead(R"({"model":"m","messages":[],"max_tokens":null})").max_tokens);
}

struct Bad {
  const char* json;
  const char* param;
};

TEST(BodyReaderTest, BadBodiesNameTheField) {
  BodyReader reader;
  for (const Bad& bad : {
           Bad{"", ""},
           Bad{"[]", ""},
           Bad{"{", ""},
           Bad{"null", ""},
           Bad{"\xff", ""},
           Bad{"{\"model\":\"m\",\"messages\":[{\"role\":\"\xff\"}]}", ""},
           Bad{"{\"model\":\"m\",\"messages\":[{\"role\":\"\n\"}]}", ""},
           Bad{R"({"model":"m","messages":[],})", ""},
           Bad{R"({"model":"m" "messages":[]})", ""},
           Bad{R"({"model":"m","messages":[]} x)", ""},
           Bad{R"({"model":"m","messages":[]}{})", ""},
           Bad{R"({"model":"m","messages":[})", "messages"},
           Bad{R"({"model":"m","messages":[{"role":"user"]})", ""},
           Bad{R"({"messages":[]})", "model"},
           Bad{R"({"model":"m"})", "messages"},
           Bad{R"({"model":1,"messages":[]})", "model"},
           Bad{R"({"model":"a","model":"b","messages":[]})", "model"},
           Bad{R"({"model":"m","messages":[],"messages":[]})", "messages"},
           Bad{R"({"model":"m","messages":"x"})", "messages"},
           Bad{R"({"model":"m","messages":["x"]})", "messages"},
           Bad{R"({"model":"m","messages":[],"tools":{}})", "tools"},
           Bad{R"({"model":"m","messages":[],"stream":"yes"})", "stream"},
           Bad{R"({"model":"m","messages":[],"stream_options":1})", "stream_options"},
           Bad{R"({"model":"m","messages":[],"stream_options":{"include_usage":1}})",
               "stream_options.include_usage"},
           Bad{R"({"model":"m","messages":[],"max_tokens":-1})", "max_tokens"},
           Bad{R"({"model":"m","messages":[],"n":0})", "n"},
           Bad{R"({"model":"m","messages":[],"n":1.5})", "n"},
       }) {
    Body body;
    const std::string json = bad.json;
    const Status status = reader.Read(Api::kChat, json, json.size(), {}, body);
    ASSERT_FALSE(status) << json;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument) << json;
    EXPECT_EQ(status.error().param, bad.param) << json;
  }
}

TEST(BodyReaderTest, AReaderThatMetABadBodyReadsTheNextOneAsIfNew) {
  BodyReader reader;
  Body body;
  const std::string bad = R"({"model":"x","messages":[{"role":"user","content":"y"},)";
  EXPECT_FALSE(reader.Read(Api::kChat, bad, bad.size(), {}, body));
  const std::string good = Chat(kTools, kMessages);
  EXPECT_TRUE(reader.Read(Api::kChat, good, good.size(), {}, body));
  EXPECT_EQ(body.identity.chain, MustRead(good).identity.chain);
}

struct Message {
  std::string role;
  std::string content;
};

std::string Render(const std::vector<Message>& messages) {
  JsonWriter w;
  w.BeginObject().Field("model", "m").Key("messages").BeginArray();
  for (const Message& m : messages) {
    w.BeginObject().Field("role", m.role).Field("content", m.content).EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

rc::Gen<std::vector<Message>> Conversations() {
  // A small alphabet with the frame bytes in it, so that near collisions are frequent.
  const auto text =
      rc::gen::container<std::string>(rc::gen::element('a', '"', '\x01', '\x02', '\x04'));
  const auto role = rc::gen::element<std::string>("user", "system", "assistant");
  return rc::gen::container<std::vector<Message>>(rc::gen::construct<Message>(role, text));
}

RC_GTEST_PROP(BodyReaderProperty, DifferentPromptsHaveDifferentChains, ()) {
  const auto a = *Conversations();
  const auto b = *Conversations();
  const bool same =
      std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Message& x, const Message& y) {
        return x.role == y.role && x.content == y.content;
      });
  RC_ASSERT((MustRead(Render(a)).identity.chain == MustRead(Render(b)).identity.chain) == same);
}

RC_GTEST_PROP(BodyReaderProperty, OneMoreMessageExtendsTheChain, ()) {
  auto messages = *Conversations();
  messages.insert(messages.begin(), {"user", "first"});  // what follows can't join the system part
  const Identity before = MustRead(Render(messages)).identity;
  messages.push_back({"user", "one more"});
  const Identity after = MustRead(Render(messages)).identity;
  RC_ASSERT(SharedBlocks(before, after) == before.size());
  RC_ASSERT(after.k1() == before.k1());
  RC_ASSERT(after.k2() == before.k2());
}

RC_GTEST_PROP(BodyReaderProperty, CutOrDamagedBodiesNeverPassForAnotherPrompt, ()) {
  std::string json = Chat(kTools, kMessages, R"(,"stream":true,"stream_options":{"a":1})");
  const auto at = *rc::gen::inRange<size_t>(0, json.size());
  const Body whole = MustRead(json);
  BodyReader reader;
  Body body;
  const Status cut = reader.Read(Api::kChat, json.substr(0, at), at, {}, body);
  RC_ASSERT(!cut);
  json[at] = *rc::gen::arbitrary<char>();
  (void)reader.Read(Api::kChat, json, json.size(), {}, body).has_value();  // must not crash
}

}  // namespace
}  // namespace hidane::prompt
