#include "net/url.h"

#include <gtest/gtest.h>

#include "net/address.h"

namespace hidane::net {
namespace {

TEST(UrlTest, TakesHostPortAndBase) {
  const auto url = ParseUrl("http://Engine-1.local:8000/v1/");
  ASSERT_TRUE(url) << url.error().what;
  EXPECT_EQ(url->host, "engine-1.local");
  EXPECT_EQ(url->port, 8000);
  EXPECT_EQ(url->base, "/v1");
  EXPECT_EQ(url->Authority(), "engine-1.local:8000");
  EXPECT_EQ(ParseUrl("http://h")->port, 80);
  EXPECT_EQ(ParseUrl("http://h/")->base, "");
  EXPECT_EQ(ParseUrl("http://[::1]:81")->host, "::1");
  EXPECT_EQ(ParseUrl("http://[::1]:81")->Authority(), "[::1]:81");
}

TEST(UrlTest, RefusesWhatParsersDisagreeAbout) {
  for (const char* bad : {"",
                          "h:80",
                          "https://h",
                          "ftp://h",
                          "http://",
                          "http://:80",
                          "http://u@h",
                          "http://u:p@h",
                          "http://good\\@evil",
                          "http://evil#good",
                          "http://h?q",
                          "http://h /x",
                          "http://h\t",
                          "http://h\n",
                          " http://h",
                          "http://h:",
                          "http://h:0",
                          "http://h:65536",
                          "http://h:+1",
                          "http://h:80x",
                          "http://h%2eevil",
                          "http://h\xc3\xa4",
                          "http://[::1",
                          "http://[::1]x",
                          "http://[]",
                          "http://::1",
                          "http://h/a//b",
                          "http://h/../x",
                          "http://h/%2e",
                          "http://h/a b",
                          "http://h/.."}) {
    const auto url = ParseUrl(bad);
    ASSERT_FALSE(url) << bad;
    EXPECT_EQ(url.error().code, Code::kInvalidArgument);
  }
}

TEST(AddressTest, ParsesWhatToListenOn) {
  EXPECT_EQ(ParseListen("127.0.0.1:8080")->ToString(), "127.0.0.1:8080");
  EXPECT_EQ(ParseListen("[::1]:80")->ToString(), "[::1]:80");
  EXPECT_EQ(ParseListen(":9")->ToString(), "0.0.0.0:9");
  EXPECT_TRUE(ParseListen("localhost:1")->loopback());
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "h:70000", "::1:80"}) {
    EXPECT_FALSE(ParseListen(bad)) << bad;
  }
}

}  // namespace
}  // namespace hidane::net
