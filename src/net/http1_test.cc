#include "net/http1.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace hidane::net {
namespace {

/// Scans and parses one request head; the status to answer with, 0 if it is taken.
int Judge(std::string_view text, RequestHead* head = nullptr, RequestMeta* meta = nullptr) {
  RequestHead own_head;
  RequestMeta own_meta;
  HeadScanner scanner;
  HttpError error;
  const HeadLimits limits;
  const auto size = scanner.Scan(text, limits, error);
  if (error) return error.status;
  if (!size) return -1;  // more bytes needed
  error = ParseRequestHead(text.substr(0, *size), limits, head ? *head : own_head,
                           meta ? *meta : own_meta);
  return error.status;
}

std::string Post(std::string_view fields) {
  return "POST /v1/x HTTP/1.1\r\nHost: h\r\n" + std::string(fields) + "\r\n";
}

std::string Get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: h\r\n\r\n";
}

TEST(RequestHeadTest, TakesAnOrdinaryRequestApart) {
  RequestHead head;
  RequestMeta meta;
  ASSERT_EQ(
      Judge("POST /v1/chat?x=1 HTTP/1.1\r\nHost: a:80\r\nX-One:  two \t\r\nContent-Length: 7\r\n"
            "Connection: close\r\n\r\n",
            &head, &meta),
      0);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path(), "/v1/chat");
  EXPECT_EQ(head.query(), "x=1");
  EXPECT_EQ(head.authority, "a:80");
  EXPECT_EQ(head.body_size, 7u);
  EXPECT_EQ(head.headers.Get("x-one"), "two");
  EXPECT_EQ(head.headers.size(), 1u) << "what frames is not among the fields";
  EXPECT_EQ(meta.framing, Framing::kLength);
  EXPECT_FALSE(meta.keep_alive);
}

// List H of the attack inputs, by number: input -> the status it is refused with.
struct Attack {
  std::string_view what;
  std::string input;
  int status;
};
void PrintTo(const Attack& a, std::ostream* out) {
  *out << a.what;
}
class AttackTest : public testing::TestWithParam<Attack> {};
TEST_P(AttackTest, IsRefused) {
  EXPECT_EQ(Judge(GetParam().input), GetParam().status);
}

const Attack kLength[] = {
    // H1
    {"with coding", Post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400},
    {"coding first", Post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400},
    {"list", Post("Content-Length: 5, 5\r\n"), 400},
    {"twice equal", Post("Content-Length: 5\r\nContent-Length: 5\r\n"), 400},
    {"twice different", Post("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
    {"plus", Post("Content-Length: +5\r\n"), 400},
    {"hex", Post("Content-Length: 0x5\r\n"), 400},
    {"space behind", Post("Content-Length: 5 \r\n"), 400},
    {"empty", Post("Content-Length:\r\n"), 400},
    {"2^64", Post("Content-Length: 18446744073709551616\r\n"), 400},
    {"negative", Post("Content-Length: -1\r\n"), 400},
    {"space inside", Post("Content-Length: 1 2\r\n"), 400},
};
const Attack kFields[] = {
    // H2
    {"empty name", Post(": x\r\n"), 400},
    {"space before colon", Post("X-A : x\r\n"), 400},
    {"obs-fold", Post("X-A: x\r\n y\r\n"), 400},
    {"tab fold", Post("X-A: x\r\n\ty\r\n"), 400},
    {"NUL", Post(std::string_view("X-A: a\0b\r\n", 10)), 400},
    {"CR in value", Post("X-A: a\rb\r\n"), 400},
    {"0x7f", Post("X-A: a\x7f\r\n"), 400},
    {"bare LF", "GET / HTTP/1.1\nHost: h\r\n\r\n", 400},
    {"bare LF at the end", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400},
    {"no colon", Post("X-A\r\n"), 400},
    {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
    {"two hosts", Post("Host: other\r\n"), 400},
    {"host with slash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"host with at", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
    {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"connection no token", Post("Connection: a b\r\n"), 400},
    {"name not ASCII", Post("X-\xc3\xa4: x\r\n"), 400},
};
const Attack kCoding[] = {
    // H3
    {"unknown", Post("Transfer-Encoding: xchunked\r\n"), 501},
    {"gzip", Post("Transfer-Encoding: gzip\r\n"), 501},
    {"identity", Post("Transfer-Encoding: identity\r\n"), 501},
    {"list", Post("Transfer-Encoding: chunked, identity\r\n"), 400},
    {"chunked twice", Post("Transfer-Encoding: chunked, chunked\r\n"), 400},
    {"vertical tab",
     Post("Transfer-Encoding: \x0b"
          "chunked\r\n"),
     400},
    {"two fields", Post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
    {"in 1.0", "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"space before colon", Post("tE : chunked\r\n"), 400},
    {"empty", Post("Transfer-Encoding:\r\n"), 501},
};
const Attack kTarget[] = {
    // H11
    {"double slash", Get("//v1/x"), 400},
    {"inner double slash", Get("/v1//x"), 400},
    {"dot segments", Get("/v1/../hidane/workers"), 400},
    {"last dot segment", Get("/v1/.."), 400},
    {"encoded dots", Get("/v1/%2e%2e/admin"), 400},
    {"half encoded dots", Get("/v1/.%2E/admin"), 400},
    {"encoded slash", Get("/v1%2fx"), 400},
    {"encoded NUL", Get("/v1/%00"), 400},
    {"encoded LF", Get("/v1/%0a"), 400},
    {"encoded backslash", Get("/v1/%5c"), 400},
    {"encoded twice", Get("/v1/%252e"), 400},
    {"broken escape", Get("/v1/%2"), 400},
    {"path parameter", Get("/v1;x/y"), 400},
    {"fragment", Get("/v1#x"), 400},
    {"backslash", Get("/v1\\x"), 400},
    {"space", Get("/v1 x"), 400},
    {"not ASCII", Get("/v1/\xc3\xa4"), 400},
    {"no slash", Get("v1/x"), 400},
    {"other scheme", Get("https://h/v1"), 400},
    {"user in absolute form", Get("http://a@b/v1"), 400},
    {"absolute with dots", Get("http://h/../x"), 400},
    {"17 KiB", Get("/" + std::string(17 << 10, 'a')), 414},
    {"64 KiB", Get("/" + std::string(64 << 10, 'a')), 431},
    {"connect", "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 501},
    {"star", Get("*"), 400},
};
const Attack kLine[] = {
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", 505},
    {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505},
    {"no version", "GET /\r\nHost: h\r\n\r\n", 400},
    {"junk", "\x16\x03\x01\r\n\r\n", 400},
    {"two spaces", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"bad method", "G{T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"unknown expectation", Post("Expect: 200-ok\r\nContent-Length: 1\r\n"), 417},
    {"lower case version", "GET / http/1.1\r\nHost: h\r\n\r\n", 400},
};
const Attack kContent[] = {
    // H5
    {"gzip", Post("Content-Encoding: gzip\r\nContent-Length: 9\r\n"), 415},
    {"chunked gzip", Post("Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 415},
    {"two codings", Post("Content-Encoding: identity, br\r\nContent-Length: 9\r\n"), 415},
};
INSTANTIATE_TEST_SUITE_P(Content, AttackTest, testing::ValuesIn(kContent));
INSTANTIATE_TEST_SUITE_P(Length, AttackTest, testing::ValuesIn(kLength));
INSTANTIATE_TEST_SUITE_P(Fields, AttackTest, testing::ValuesIn(kFields));
INSTANTIATE_TEST_SUITE_P(Coding, AttackTest, testing::ValuesIn(kCoding));
INSTANTIATE_TEST_SUITE_P(Target, AttackTest, testing::ValuesIn(kTarget));
INSTANTIATE_TEST_SUITE_P(Line, AttackTest, testing::ValuesIn(kLine));

TEST(RequestHeadTest, RefusesMoreThan100FieldsBut100AreFine) {
  std::string fields;
  for (int i = 0; i < 99; ++i) fields += "x: y\r\n";  // and Host
  EXPECT_EQ(Judge(Post(fields)), 0);
  EXPECT_EQ(Judge(Post(fields + "x: y\r\n")), 431);
}

TEST(RequestHeadTest, RefusesAHeadOver64KiBBeforeItEnds) {
  const std::string endless = "GET / HTTP/1.1\r\nx: " + std::string(65 << 10, 'a');
  EXPECT_EQ(Judge(endless), 431);
}

TEST(RequestHeadTest, DropsNamesWithUnderscoreAndWhatConnectionNames) {
  RequestHead head;
  ASSERT_EQ(Judge(Post("content_length: 9\r\nTransfer_Encoding: chunked\r\nX_Y: 1\r\n"
                       "Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 3\r\n"
                       "TE: trailers\r\nUpgrade: h2c\r\nProxy-Connection: x\r\nX-Ok: 1\r\n"),
                  &head),
            0);
  ASSERT_EQ(head.headers.size(), 1u);
  EXPECT_EQ(head.headers[0].name, "X-Ok");
  EXPECT_EQ(head.body_size, 0u);
}

TEST(RequestHeadTest, BringsTargetsToOneForm) {
  const std::pair<std::string_view, std::string_view> forms[] = {
      {"/", "/"},
      {"/%76%31/x", "/v1/x"},
      {"/a%20b", "/a%20b"},
      {"/a.b/..c", "/a.b/..c"},
      {"/x?a=../..;b", "/x?a=../..;b"},
      {"http://other:1/v1", "/v1"},
  };
  for (const auto& [sent, seen] : forms) {
    RequestHead head;
    ASSERT_EQ(Judge(Get(sent), &head), 0) << sent;
    EXPECT_EQ(head.target, seen);
  }
}

TEST(RequestHeadTest, AbsoluteFormNamesTheAuthority) {
  RequestHead head;
  ASSERT_EQ(Judge(Get("http://other:1/v1"), &head), 0);
  EXPECT_EQ(head.authority, "other:1");
}

TEST(RequestHeadTest, Http10KeepsOnlyWhenAsked) {
  RequestMeta meta;
  ASSERT_EQ(Judge("GET / HTTP/1.0\r\n\r\n", nullptr, &meta), 0);
  EXPECT_FALSE(meta.keep_alive);
  ASSERT_EQ(Judge("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", nullptr, &meta), 0);
  EXPECT_TRUE(meta.keep_alive);
}

RC_GTEST_PROP(HeadScannerTest, FindsTheSameEndInWhateverPieces, ()) {
  const auto letters = *rc::gen::container<std::string>(rc::gen::element('a', '\r', '\n', ':'));
  const std::string text = "G / H\r\n" + letters + "\r\n\r\nrest";
  const HeadLimits limits;
  HttpError whole_error;
  const auto whole = HeadScanner().Scan(text, limits, whole_error);
  HeadScanner scanner;
  HttpError error;
  std::optional<size_t> found;
  for (size_t have = 0; have < text.size() && !found && !error;) {
    have += *rc::gen::inRange<size_t>(1, 5);
    found = scanner.Scan(std::string_view(text).substr(0, have), limits, error);
  }
  RC_ASSERT(found == whole);
  RC_ASSERT(error.status == whole_error.status);
}

// --- responses: what a hostile upstream may send (H12)

int JudgeResponse(std::string_view text, std::string_view method = "GET",
                  ResponseMeta* meta = nullptr) {
  ResponseHead head;
  ResponseMeta own_meta;
  HeadScanner scanner;
  HttpError error;
  const HeadLimits limits;
  const auto size = scanner.Scan(text, limits, error);
  if (error) return error.status;
  if (!size) return -1;
  error = ParseResponseHead(text.substr(0, *size), limits, method, head, meta ? *meta : own_meta);
  return error.status;
}

TEST(ResponseHeadTest, RefusesWhatTwoReadersMightReadApart) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(JudgeResponse(ok + "Content-Length: 1\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse(ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse(ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse(ok + "Transfer-Encoding: gzip\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse(ok + "X: a\rb\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse(ok + "X: a\n\r\n"), 0);
  EXPECT_NE(JudgeResponse("HTTP/1.1 099 X\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse("HTTP/1.1 20 OK\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse("HTTP/2 200 OK\r\n\r\n"), 0);
  EXPECT_NE(JudgeResponse("ICY 200 OK\r\n\r\n"), 0);
}

TEST(ResponseHeadTest, KnowsWhenThereIsNoBody) {
  const std::string fields = "Content-Length: 5\r\n\r\n";
  const auto framing = [&](std::string_view line, std::string_view method) {
    ResponseMeta meta;
    EXPECT_EQ(JudgeResponse(std::string(line) + fields, method, &meta), 0);
    return meta.framing;
  };
  EXPECT_EQ(framing("HTTP/1.1 200 OK\r\n", "GET"), Framing::kLength);
  EXPECT_EQ(framing("HTTP/1.1 200 OK\r\n", "HEAD"), Framing::kNone);
  EXPECT_EQ(framing("HTTP/1.1 204 No Content\r\n", "GET"), Framing::kNone);
  EXPECT_EQ(framing("HTTP/1.1 304 Not Modified\r\n", "GET"), Framing::kNone);
}

TEST(ResponseHeadTest, BodyWithoutLengthRunsToTheEndAndKeepsNothing) {
  ResponseMeta meta;
  ASSERT_EQ(JudgeResponse("HTTP/1.1 200 OK\r\n\r\n", "GET", &meta), 0);
  EXPECT_EQ(meta.framing, Framing::kUntilClose);
  EXPECT_FALSE(meta.keep_alive);
}

TEST(AppendHeadTest, FieldsCannotBreakOutOrFrame) {
  ResponseHead head;
  head.headers.Add("x-a", "one\r\nSet-Cookie: two");
  head.headers.Add("Content-Length", "99");
  head.headers.Add("Transfer-Encoding", "chunked");
  std::string out;
  AppendResponseHead(out, head, {.framing = Framing::kLength, .length = 3}, {});
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\nx-a: one  Set-Cookie: two\r\ncontent-length: 3\r\n\r\n");
}

// --- chunked bodies (H4)

struct Decoded {
  int status = 0;
  bool done = false;
  std::string body;
  size_t consumed = 0;
  bool operator==(const Decoded&) const = default;
};

/// Feeds `text` in pieces of the sizes that `next` gives.
template <class Next>
Decoded DecodeChunks(std::string text, Next next) {
  Decoded out;
  ChunkedDecoder decoder;
  while (out.consumed < text.size() && !decoder.done()) {
    const size_t n = std::min<size_t>(next(), text.size() - out.consumed);
    std::string piece = text.substr(out.consumed, n);
    ChunkedDecoder::Step step;
    out.status = decoder.Decode(piece, step).status;
    if (out.status != 0) return {.status = out.status, .done = false, .body = {}, .consumed = 0};
    out.body += piece.substr(0, step.body);
    out.consumed += step.consumed;
  }
  out.done = decoder.done();
  return out;
}
Decoded DecodeChunks(std::string text) {
  return DecodeChunks(std::move(text), [] { return size_t{1} << 30; });
}

TEST(ChunkedTest, TakesTheCodingOffAndStopsAtTheEnd) {
  const std::string text = "4\r\nWiki\r\n6;a=b\r\npedia \r\n0A\r\n0123456789\r\n0\r\nT: x\r\n\r\n";
  const Decoded d = DecodeChunks(text + "next");
  EXPECT_EQ(d.status, 0);
  EXPECT_TRUE(d.done);
  EXPECT_EQ(d.body, "Wikipedia 0123456789");
  EXPECT_EQ(d.consumed, text.size());
}

TEST(ChunkedTest, RefusesWhatIsNoChunk) {
  for (const char* bad :
       {"-2\r\nab\r\n", "0x5\r\nabcde\r\n", "+5\r\nabcde\r\n", "5_0\r\n", "\r\n",
        "12345678901234567\r\n", "5\nabcde\r\n", "5 \r\nabcde\r\n", "5;a\nb\r\nabcde\r\n",
        "5\r\nabcdefg\r\n", "5\r\nabcde\n0\r\n\r\n", "0\r\nX\r\n\r\n", "0\r\nX: a\n\r\n",
        "0\r\n: x\r\n\r\n", "0\r\n x: y\r\n\r\n", "5\r\rabcde\r\n", "0\r\n\n"}) {
    EXPECT_EQ(DecodeChunks(bad).status, 400) << bad;
  }
}

TEST(ChunkedTest, BoundsExtensionsAndTrailers) {
  const std::string mib(1 << 20, 'a');
  EXPECT_EQ(DecodeChunks("5;" + mib + "\r\n").status, 400);
  EXPECT_EQ(DecodeChunks("0\r\nX: " + mib + "\r\n\r\n").status, 400);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "1;aaa\r\nx\r\n";
  EXPECT_EQ(DecodeChunks(many).status, 400) << "the bound is on the whole body";
}

RC_GTEST_PROP(ChunkedTest, PiecesDoNotMatter, ()) {
  std::string text;
  for (const auto& chunk : *rc::gen::arbitrary<std::vector<std::string>>()) {
    if (chunk.empty()) continue;
    text += fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk);
  }
  text += "0\r\n\r\n";
  if (*rc::gen::arbitrary<bool>()) {  // and with damage
    text[*rc::gen::inRange<size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  }
  const auto sizes =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(1, 9)));
  size_t i = 0;
  const Decoded pieces = DecodeChunks(text, [&] { return sizes[i++ % sizes.size()]; });
  RC_ASSERT(pieces == DecodeChunks(text));
}

}  // namespace
}  // namespace hidane::net
