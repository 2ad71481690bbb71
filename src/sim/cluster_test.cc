#include "sim/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sim/engine_test_util.h"
#include "sim/prompt_chain.h"

namespace hidane::sim {
namespace {

EngineOptions OneMillisecondAToken() {
  EngineOptions options = RoundNumbers(400'000);
  options.gpu.prefill_overhead_s = 0;
  return options;
}

Request Prompt(uint64_t id, uint32_t tokens) {
  Request request;
  request.id = id;
  AppendTokens(id, tokens, request.prompt);
  return request;
}

// `1 end 100`: worker and milliseconds. Requests (worker, tokens, when in ms).
std::vector<std::string> Ends(uint32_t cores, std::vector<std::array<uint32_t, 3>> requests) {
  using std::chrono::milliseconds;
  Agenda agenda;
  const std::vector<EngineOptions> engines(4, OneMillisecondAToken());
  Cluster cluster(engines, cores, agenda);
  for (uint32_t i = 0; i < requests.size(); ++i) {
    agenda.Push(milliseconds(requests[i][2]), {.kind = Event::Kind::kSend, .id = i});
  }
  std::vector<std::string> ends;
  while (!agenda.empty()) {
    const auto due = agenda.Pop();
    const Event& event = due.event;
    if (event.kind == Event::Kind::kSend) {
      const auto [worker, tokens, at] = requests[event.id];
      EXPECT_EQ(cluster.Submit(Prompt(event.id, tokens), worker, due.at), Sent::kTaken);
      continue;
    }
    if (event.kind == Event::Kind::kStepEnd) {
      for (const StepEvent& e : cluster.EndStep(event.who, event.id)) {
        if (e.kind != StepEvent::Kind::kFinished) continue;
        ends.push_back(std::to_string(event.who) + " end " +
                       std::to_string(due.at / milliseconds(1)));
      }
    }
    cluster.BeginStep(event.who, due.at);
  }
  return ends;
}

using testing::ElementsAre;

TEST(ClusterTest, EnginesWithGpusOfTheirOwnDoNotSlowEachOtherDown) {
  EXPECT_THAT(Ends(0, {{0, 100, 0}, {1, 100, 0}, {2, 100, 0}, {3, 100, 0}}),
              ElementsAre("0 end 100", "1 end 100", "2 end 100", "3 end 100"));
}

TEST(ClusterTest, EnginesOnSharedCoresAreAsManyTimesSlowerAsTheyAreMoreThanTheCores) {
  EXPECT_THAT(Ends(2, {{0, 100, 0}, {1, 100, 0}}), ElementsAre("0 end 100", "1 end 100"));
  EXPECT_THAT(Ends(2, {{0, 100, 0}, {1, 100, 0}, {2, 100, 0}, {3, 100, 0}}),
              ElementsAre("0 end 200", "1 end 200", "2 end 200", "3 end 200"));
}

// Three at 2/3 speed until 150: 100 done each. Then two alone, at full speed.
TEST(ClusterTest, WhoeverIsLeftGetsTheShareOfThoseThatAreDone) {
  EXPECT_THAT(Ends(2, {{0, 100, 0}, {1, 180, 0}, {2, 200, 0}}),
              ElementsAre("0 end 150", "1 end 230", "2 end 250"));
}

// Alone until 60, with 40 to do; then both at half speed for 80 ms.
TEST(ClusterTest, ALatecomerSlowsThoseThatCompute) {
  EXPECT_THAT(Ends(1, {{0, 100, 0}, {1, 50, 60}}), ElementsAre("0 end 140", "1 end 150"));
}

}  // namespace
}  // namespace hidane::sim
