#include "gateway/headers.h"

#include <gtest/gtest.h>

namespace hidane::gateway {
namespace {

net::Headers Make(std::initializer_list<std::pair<const char*, const char*>> fields) {
  net::Headers headers;
  for (const auto& [name, value] : fields) headers.Add(name, value);
  return headers;
}

std::string Names(const net::Headers& headers) {
  std::string out;
  for (const net::Header field : headers) out += std::string(field.name) + " ";
  return out;
}

TEST(HeadersTest, AClientsCredentialsStayHere) {
  const auto out = HeadersForEngine(Make({{"Authorization", "Bearer c"},
                                          {"X-API-Key", "c"},
                                          {"api-key", "c"},
                                          {"Cookie", "c"},
                                          {"Proxy-Authorization", "c"},
                                          {"X-Forwarded-For", "1"},
                                          {"X-Real-IP", "1"},
                                          {"Forwarded", "for=1"},
                                          {"X-Hidane-Worker", "w"},
                                          {"content_length", "3"},
                                          {"x-request-id", "theirs"},
                                          {"X-Custom", "1"},
                                          {"Content-Type", "a/b"}}),
                                    "", "id", false);
  EXPECT_EQ(Names(out), "X-Custom Content-Type x-request-id ");
  EXPECT_EQ(out.Get("x-request-id"), "id");
}

TEST(HeadersTest, AnEngineGetsItsOwnKey) {
  const auto out = HeadersForEngine(Make({{"authorization", "Bearer c"}}), "e", "id", false);
  EXPECT_EQ(out.Get("authorization"), "Bearer e");
  EXPECT_EQ(out.Count("authorization"), 1u);
}

TEST(HeadersTest, AnAnswerThatIsLookedIntoMustComePlain) {
  const auto from = Make({{"Accept-Encoding", "gzip"}, {"Accept", "*/*"}});
  EXPECT_EQ(HeadersForEngine(from, "", "id", true).Count("accept-encoding"), 0u);
  EXPECT_EQ(HeadersForEngine(from, "", "id", false).Count("accept-encoding"), 1u);
}

TEST(HeadersTest, AnAnswerDoesNotNameTheEngine) {
  const auto out = HeadersForClient(Make({{"Server", "uvicorn"},
                                          {"Via", "x"},
                                          {"Set-Cookie", "a"},
                                          {"X-Powered-By", "y"},
                                          {"x-hidane-worker", "z"},
                                          {"x-request-id", "e"},
                                          {"Retry-After", "3"}}));
  EXPECT_EQ(Names(out), "Retry-After ");
}

TEST(HeadersTest, EventStreamsThatCanBeReadAreKnown) {
  EXPECT_TRUE(IsEventStream(Make({{"content-type", "Text/Event-Stream; charset=utf-8"}})));
  EXPECT_FALSE(IsEventStream(Make({{"content-type", "application/json"}})));
  EXPECT_FALSE(
      IsEventStream(Make({{"content-type", "text/event-stream"}, {"content-encoding", "gzip"}})));
}

TEST(HeadersTest, ARequestIdIsShortAndPlain) {
  EXPECT_TRUE(IsRequestId("abc-1_2.3"));
  EXPECT_FALSE(IsRequestId(""));
  EXPECT_FALSE(IsRequestId("a b"));
  EXPECT_FALSE(IsRequestId("a\"b"));
  EXPECT_FALSE(IsRequestId(std::string(129, 'a')));
}

}  // namespace
}  // namespace hidane::gateway
