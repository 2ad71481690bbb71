#include "sim/tenant_loop.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hidane::sim {
namespace {

/// Answers each request at once, a tenth of a second after the one before.
std::vector<Request> Drive(TenantLoop& loop, size_t most) {
  std::vector<Request> sent;
  while (auto request = loop.Next()) sent.push_back(*std::move(request));
  for (size_t done = 0; done < sent.size() && sent.size() < most; ++done) {
    const TimePoint now = FromSeconds(0.1 * static_cast<double>(done));
    const Request ended = sent[done];
    if (auto request = loop.After({.request = ended, .ok = true}, now)) {
      sent.push_back(*std::move(request));
    }
  }
  return sent;
}

TenantLoopOptions Small() {
  return {.tenants = 12, .concurrency = 5, .requests = 100, .uncounted = 30};
}

TEST(TenantLoop, WarmsUpWithOneRequestOfEachTenantAndCountsTheRest) {
  TenantLoop loop(Small());
  const auto sent = Drive(loop, 1'000);
  ASSERT_EQ(sent.size(), 100u);
  std::set<uint32_t> first;
  for (size_t i = 0; i < sent.size(); ++i) {
    if (i < 12) first.insert(sent[i].tenant);
    EXPECT_EQ(sent[i].counted, i >= 30) << i;
  }
  EXPECT_EQ(first.size(), 12u);
}

TEST(TenantLoop, PromptsBeginWithTheTenantsStaticPrefix) {
  TenantLoop loop(Small());
  std::vector<prompt::Identity> of(12);
  for (const Request& request : Drive(loop, 1'000)) {
    const prompt::Identity& prompt = request.prompt;
    const uint32_t fixed = prompt.BytesAt(prompt.k1_end), own = prompt.tokens - fixed;
    EXPECT_NEAR(fixed, 27'000, 0.06 * 27'000 + 1);
    EXPECT_GE(own, 500u);
    EXPECT_LE(own, 1'500u);
    EXPECT_GE(request.output_tokens, 60u);
    EXPECT_LE(request.output_tokens, 180u);
    EXPECT_EQ(prompt.tokens, prompt.ends.back());
    prompt::Identity& first = of[request.tenant];
    if (first.size() > 0) {
      EXPECT_EQ(first.k1(), prompt.k1());
      EXPECT_NE(first.chain.back(), prompt.chain.back());
    }
    first = prompt;
  }
}

TEST(TenantLoop, TheSameSeedSendsTheSameWhateverTheClusterDoes) {
  TenantLoop one(Small()), two(Small());
  const auto sent = Drive(one, 1'000);
  std::vector<Request> other;  // one client does all
  while (auto request = two.Next()) other.push_back(*std::move(request));
  while (auto request = two.After({.request = other.back(), .ok = true}, FromSeconds(7))) {
    other.push_back(*std::move(request));
  }
  ASSERT_EQ(sent.size(), other.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].tenant, other[i].tenant);
    EXPECT_EQ(sent[i].prompt.chain, other[i].prompt.chain);
    EXPECT_EQ(sent[i].output_tokens, other[i].output_tokens);
  }
}

TEST(TenantLoop, ZipfMakesTheFirstTenantTheBusiest) {
  TenantLoopOptions options = Small();
  options.zipf_s = 1;
  options.uncounted = 0;
  options.requests = 2'000;
  TenantLoop loop(options);
  std::vector<int> count(12);
  for (const Request& request : Drive(loop, 10'000)) ++count[request.tenant];
  EXPECT_NEAR(count[0] / 2'000.0, 0.322, 0.05);  // 1 / the 12th harmonic number
  EXPECT_GT(count[0], count[11] * 5);
}

TEST(TenantLoop, ABurstComesAtOnceAtItsTime) {
  TenantLoop loop({.tenants = 80, .burst = 100, .burst_at = FromSeconds(9)});
  std::set<uint32_t> tenants;
  size_t sent = 0;
  while (const auto request = loop.Next()) {
    EXPECT_EQ(request->arrival, FromSeconds(9));
    EXPECT_TRUE(request->counted);
    EXPECT_FALSE(loop.After({.request = *request, .ok = true}, FromSeconds(10)));
    tenants.insert(request->tenant);
    ++sent;
  }
  EXPECT_EQ(sent, 100u);
  EXPECT_NEAR(static_cast<double>(tenants.size()), 57.3, 10);  // 80 (1 - (79/80)^100)
}

TEST(TenantLoop, ASurgeRaisesTheRateForAWhile) {
  TenantLoop loop({.tenants = 3,
                   .rate_per_s = 20,
                   .surge = 5,
                   .surge_at = FromSeconds(100),
                   .surge_until = FromSeconds(150),
                   .requests = 1'000'000,
                   .until = FromSeconds(200)});
  double before = 0, during = 0, after = 0;
  while (const auto request = loop.Next()) {
    const double at = Seconds(request->arrival);
    ++(at < 100 ? before : at < 150 ? during : after);
  }
  EXPECT_NEAR(before, 2'000, 150);
  EXPECT_NEAR(during, 5'000, 250);
  EXPECT_NEAR(after, 1'000, 110);
}

TEST(TenantLoop, ChurnBringsNewTenantsAndTakesOldOnes) {
  TenantLoopOptions options = Small();
  options.requests = 1'000;
  options.uncounted = 0;
  options.churn_every = FromSeconds(2);
  TenantLoop loop(options);
  std::set<uint32_t> last;
  const auto sent = Drive(loop, 10'000);  // 100 s: 50 changes
  std::set<uint32_t> all, late;
  for (const Request& request : sent) all.insert(request.tenant);
  for (size_t i = 900; i < sent.size(); ++i) late.insert(sent[i].tenant);
  EXPECT_NEAR(static_cast<double>(all.size()), 12 + 25, 5);
  EXPECT_FALSE(late.contains(0) && late.contains(1) && late.contains(2) && late.contains(3));
}

TEST(TenantLoop, AFailedRequestIsSentAnewAtOnceAndThenEverLater) {
  TenantLoop loop(Small());
  Request request = *loop.Next();
  const uint64_t chain = request.prompt.chain.back();
  TimePoint now = FromSeconds(1);
  for (const double delay_s : {0.0, 0.5, 1.0, 2.0}) {
    request = *loop.After({.request = request, .ok = false}, now);
    EXPECT_EQ(request.arrival, now + FromSeconds(delay_s));
    EXPECT_EQ(request.waited, request.arrival);
    EXPECT_EQ(request.prompt.chain.back(), chain);
    now = request.arrival;
  }
  const auto other = loop.After({.request = request, .ok = false}, now);
  ASSERT_TRUE(other);  // the client turns to its next request
  EXPECT_NE(other->prompt.chain.back(), chain);
  EXPECT_EQ(other->attempt, 0u);
}

}  // namespace
}  // namespace hidane::sim
