#include "gateway/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hidane::gateway {
namespace {

ConfigSources OneUpstream() {
  ConfigSources sources;
  sources.file_name = "hidane.toml";
  sources.upstreams = {"http://127.0.0.1:9000"};
  return sources;
}

Error ErrorOf(const ConfigSources& sources) {
  auto config = LoadConfig(sources);
  EXPECT_FALSE(config.has_value());
  return config ? Error{} : config.error();
}

bool Mentions(const Error& error, std::string_view text) {
  return error.what.find(text) != std::string::npos;
}

TEST(ConfigTest, LaterSourcesWinAndOriginsAreKept) {
  ConfigSources sources = OneUpstream();
  sources.file_text = "[routing]\nfill = 0.5\nheadroom = 2\nspare_mark = 0.1\n";
  sources.environment = {{"HIDANE_ROUTING__HEADROOM", "3"}, {"HIDANE_ROUTING__SPARE_MARK", "0.2"}};
  sources.sets = {"routing.spare_mark=0.3"};
  const auto config = LoadConfig(sources).value();
  EXPECT_EQ((*config).routing_fill(), 0.5);
  EXPECT_EQ(config->routing_headroom(), 3.0);
  EXPECT_EQ(config->routing_spare_mark(), 0.3);
  EXPECT_EQ(config->routing_near_tie_ms.origin(), Origin::kDefault);
  EXPECT_EQ(config->routing_fill.origin(), Origin::kFile);
  EXPECT_EQ(config->routing_headroom.origin(), Origin::kEnvironment);
  EXPECT_EQ(config->routing_spare_mark.origin(), Origin::kFlag);
}

TEST(ConfigTest, AnUnknownKeyIsAnErrorThatNamesTheNearestOneAndItsPlace) {
  ConfigSources sources = OneUpstream();
  sources.file_text = "[server]\nlisten = \"127.0.0.1:1\"\n\n[limits]\nbody_byte_max = 1\n";
  const Error error = ErrorOf(sources);
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_TRUE(Mentions(error, "hidane.toml:5:")) << error.what;
  EXPECT_TRUE(Mentions(error, "limits.body_bytes_max")) << error.what;

  sources = OneUpstream();
  sources.sets = {"routing.polcy=prefix"};
  EXPECT_TRUE(Mentions(ErrorOf(sources), "routing.policy"));
  sources = OneUpstream();
  sources.environment = {{"HIDANE_SERVER__LISTN", "x"}};
  EXPECT_TRUE(Mentions(ErrorOf(sources), "server.listen"));
}

TEST(ConfigTest, OtherProgramsVariablesAreLeftAlone) {
  ConfigSources sources = OneUpstream();
  sources.environment = {{"HIDANE_OFFLINE", "1"}, {"PATH", "/bin"}};
  EXPECT_TRUE(LoadConfig(sources).has_value());
}

TEST(ConfigTest, WrongTypesRangesAndChoicesNameKeyAndValue) {
  for (const auto& [set, key] :
       std::vector<std::pair<std::string, std::string>>{{"server.threads=many", "server.threads"},
                                                        {"server.threads=-1", "server.threads"},
                                                        {"server.threads=1.5", "server.threads"},
                                                        {"routing.fill=1.5", "routing.fill"},
                                                        {"routing.fill=nan", "routing.fill"},
                                                        {"routing.policy=best", "routing.policy"},
                                                        {"log.requests=perhaps", "log.requests"}}) {
    ConfigSources sources = OneUpstream();
    sources.sets = {set};
    const Error error = ErrorOf(sources);
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_EQ(error.param, key);
    EXPECT_TRUE(Mentions(error, set.substr(set.find('=') + 1))) << error.what;
  }
}

TEST(ConfigTest, AFileThatIsNotTomlSaysWhere) {
  ConfigSources sources = OneUpstream();
  sources.file_text = "[server\nlisten=1";
  EXPECT_TRUE(Mentions(ErrorOf(sources), "hidane.toml:1:"));
}

TEST(ConfigTest, UpstreamsComeFromTheFileWithTheirKeys) {
  ConfigSources sources;
  sources.file_text =
      "[[upstream]]\nurl = \"http://a:8000/v1\"\napi_key_env = \"K\"\n"
      "[[upstream]]\nurl = \"http://[::1]\"\nname = \"big\"\nkv_capacity_tokens = 9\n";
  sources.environment = {{"K", "secret"}};
  const auto config = LoadConfig(sources).value();
  ASSERT_EQ(config->upstreams.size(), 2u);
  EXPECT_EQ(config->upstreams[0]->host, "a");
  EXPECT_EQ(config->upstreams[0]->port, 8000);
  EXPECT_EQ(config->upstreams[0]->name(), "w0");
  EXPECT_EQ(config->upstreams[0]->api_key, "secret");
  EXPECT_EQ(config->upstreams[1]->host, "::1");
  EXPECT_EQ(config->upstreams[1]->port, 80);
  EXPECT_EQ(config->upstreams[1]->kv_capacity_tokens(), 9);
  EXPECT_EQ(PrintConfig(*config).find("secret"), std::string::npos);
  EXPECT_EQ(ConfigJson(*config).find("secret"), std::string::npos);
}

TEST(ConfigTest, UpstreamFlagsReplaceTheFiles) {
  ConfigSources sources = OneUpstream();
  sources.file_text = "[[upstream]]\nurl = \"http://a:1\"\n[[upstream]]\nurl = \"http://b:1\"\n";
  const auto config = LoadConfig(sources).value();
  ASSERT_EQ(config->upstreams.size(), 1u);
  EXPECT_EQ(config->upstreams[0]->port, 9000);
}

TEST(ConfigTest, BadUpstreamsAreRefused) {
  for (const char* url : {"", "a:1", "ftp://a:1", "https://a:1", "http://", "http://:80",
                          "http://a:0", "http://a:65536", "http://a:1/x", "http://u@a:1",
                          "http://a:1#b", "http://a:1?b", "http://good\\@evil:1"}) {
    ConfigSources sources;
    sources.upstreams = {url};
    EXPECT_EQ(ErrorOf(sources).code, Code::kInvalidArgument) << url;
  }
  EXPECT_EQ(ErrorOf(ConfigSources{}).code, Code::kInvalidArgument);
  ConfigSources unset = OneUpstream();
  unset.upstreams.clear();
  unset.file_text = "[[upstream]]\nurl = \"http://a:1\"\napi_key_env = \"NOT_SET\"\n";
  EXPECT_TRUE(Mentions(ErrorOf(unset), "NOT_SET"));
}

TEST(ConfigTest, WhatIsPrintedLoadsToTheSame) {
  ConfigSources sources = OneUpstream();
  sources.sets = {"routing.policy=round_robin", "routing.fill=0.25"};
  const std::string printed = PrintConfig(*LoadConfig(sources).value());
  ConfigSources again;
  again.file_text = printed;
  const auto config = LoadConfig(again).value();
  EXPECT_EQ(config->routing_policy(), "round_robin");
  EXPECT_EQ(config->routing_fill(), 0.25);
  EXPECT_EQ(config->upstreams[0]->port, 9000);
}

}  // namespace
}  // namespace hidane::gateway
