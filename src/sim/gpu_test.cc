#include "sim/gpu.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "sim/model_check.h"

namespace hidane::sim {
namespace {

TEST(GpuSetupTest, IsFoundByNameOrByItsFirstParts) {
  for (const GpuSetup& setup : GpuSetups()) EXPECT_EQ(FindGpuSetup(setup.name)->name, setup.name);
  EXPECT_EQ(FindGpuSetup("70b-fp8-h100")->name, "70b-fp8-h100x4");
  EXPECT_EQ(FindGpuSetup("8b")->name, "8b-bf16-h100");
}

TEST(GpuSetupTest, AnUnknownNameGetsTheListOfThoseThereAre) {
  for (const char* name : {"", "8", "8b-bf16-h10", "h100", "70b-fp8-h100x41"}) {
    const auto setup = FindGpuSetup(name);
    ASSERT_FALSE(setup) << name;
    EXPECT_EQ(setup.error().param, "gpu");
    EXPECT_NE(setup.error().what.find("70b-fp8-h100x8"), std::string::npos);
  }
}

TEST(StepModelTest, CostsNothingWhereThereIsNothingToDo) {
  const StepModel model(GpuSetups()[0]);
  EXPECT_EQ(model.Seconds({}), 0);
  EXPECT_EQ(model.TokenSeconds(5, 5), 0);
  EXPECT_EQ(model.TokenSeconds(5, 4), 0);
}

// The research note's examples: 28k tokens cold, and 1k after 27k cached ones.
TEST(StepModelTest, ThePromptsOfTheSeedScenarioTakeWhatTheResearchSays) {
  const StepModel model(*FindGpuSetup("8b-bf16-h100"));
  const StepShape::Chunk cold{.new_tokens = 28'000},
      warm{.new_tokens = 1'000, .cached_tokens = 27'000};
  EXPECT_NEAR(model.PrefillSeconds(std::span(&cold, 1)), 1.110, 0.011);
  EXPECT_NEAR(model.PrefillSeconds(std::span(&warm, 1)), 0.066, 0.002);
}

// t_dec(ms) = 4.50 + 0.0274 B + 0.0308 K / 1000, fitted on 34 points.
TEST(StepModelTest, TheGeneralDecodeFormulaIsTheFittedOneForTheSetupItWasFittedOn) {
  const StepModel model(*FindGpuSetup("8b-fp8-h200"));
  for (const uint32_t seqs : {1u, 12u, 100u}) {
    for (const uint32_t kv : {3'000u, 300'000u, 900'000u}) {
      const double fitted = (4.50 + 0.0274 * seqs + 0.0308 * kv / 1000) / 1000;
      EXPECT_NEAR(model.DecodeSeconds(seqs, kv) / fitted, 1, 0.01) << seqs << " " << kv;
    }
  }
}

RC_GTEST_PROP(StepModelProps, ChunksOfAPromptCostWhatThePromptCosts,
              (uint16_t begin, uint16_t middle, uint16_t end)) {
  uint32_t at[] = {begin, middle, end};
  std::ranges::sort(at);
  for (const GpuSetup& setup : GpuSetups()) {
    const StepModel model(setup);
    const double whole = model.TokenSeconds(at[0], at[2]);
    const double parts = model.TokenSeconds(at[0], at[1]) + model.TokenSeconds(at[1], at[2]);
    RC_ASSERT(std::abs(whole - parts) <= 1e-9);
  }
}

void ExpectWithinLimits(const std::vector<ModelCheckRow>& rows) {
  double decode = 0;
  size_t decodes = 0;
  for (const ModelCheckRow& row : rows) {
    EXPECT_TRUE(row.ok()) << row.point.setup << " " << row.point.tokens << ": " << row.error;
    if (row.limit == 0) decode += std::abs(row.error), ++decodes;
  }
  EXPECT_LE(decode / static_cast<double>(decodes), 0.08) << ModelCheckTable(rows);
}

TEST(ModelCheckTest, TheModelIsWithinItsLimitsOfTheMeasuredPoints) {
  ExpectWithinLimits(CheckModel(MeasuredPoints()));
}

TEST(ModelCheckTest, TheTableNamesAPointOverItsLimit) {
  MeasuredPoint point = MeasuredPoints()[7];
  point.measured_s /= 2;
  const auto rows = CheckModel(std::span(&point, 1));
  EXPECT_FALSE(rows[0].ok());
  EXPECT_NE(ModelCheckTable(rows).find("over"), std::string::npos);
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path);
  return (std::ostringstream() << file.rdbuf()).str();
}

// The numbers of `"key": [1, 2, ...]`.
std::vector<double> Numbers(const std::string& json, const std::string& key) {
  const size_t begin = json.find('[', json.find('"' + key + '"')) + 1;
  std::stringstream list(json.substr(begin, json.find(']', begin) - begin));
  std::vector<double> numbers;
  for (std::string one; std::getline(list, one, ',');) numbers.push_back(std::stod(one));
  return numbers;
}

std::vector<MeasuredPoint> ReadProfile(const std::string& path) {
  const std::string json = Slurp(path);
  std::vector<MeasuredPoint> points;
  const auto isl = Numbers(json, "prefill_isl"), ttft = Numbers(json, "prefill_ttft");
  for (size_t i = 0; i < isl.size(); ++i) {
    points.push_back({MeasuredPoint::What::kTtft, "8b-fp8-h200", 1, isl[i], 1, ttft[i] / 1e3, ""});
  }
  const auto usage = Numbers(json, "x_kv_usage"), context = Numbers(json, "y_context_length"),
             itl = Numbers(json, "z_itl");
  for (size_t i = 0; i < usage.size(); ++i) {
    if (context[i] < 2'900) continue;  // shorter ones were not fitted
    points.push_back({MeasuredPoint::What::kDecodeStep, "8b-fp8-h200", 1, context[i],
                      usage[i] * 945'029 / context[i], itl[i] / 1e3, ""});
  }
  return points;
}

// Rows of Llama-3.1-70B in vLLM at concurrency 4: where nothing queues for long.
std::vector<MeasuredPoint> ReadSilicon(const std::string& path) {
  std::stringstream file(Slurp(path));
  std::vector<MeasuredPoint> points;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> f;
    std::stringstream fields(line);
    for (std::string one; std::getline(fields, one, ',');) f.push_back(one);
    if (f[0] != "vllm" || f[2] != "meta-llama/Llama-3.1-70B" || f[10] != "4") continue;
    const double isl = std::stod(f[7]), osl = std::stod(f[8]);
    if (osl > 1'024) continue;  // an answer of 8,192 tokens: another regime
    const auto setup = f[3] == "h100_sxm" ? "70b-fp8-h100" : "70b-fp8-h200";
    const auto gpus = static_cast<uint32_t>(std::stoul(f[6]));
    points.push_back({MeasuredPoint::What::kTtft, setup, gpus, isl, 1, std::stod(f[11]) / 1e3, ""});
    points.push_back({MeasuredPoint::What::kDecodeStep, setup, gpus, isl + osl / 2, 4,
                      std::stod(f[12]) / 1e3, ""});
  }
  return points;
}

TEST(ModelCheckTest, TheModelIsWithinItsLimitsOfEveryMatchingRowOfTheDataSets) {
  const char* traces = std::getenv("HIDANE_TRACES");
  if (traces == nullptr) GTEST_SKIP() << "HIDANE_TRACES names no directory of traces";
  const std::string perf = std::string(traces) + "/perf/";
  std::vector<MeasuredPoint> points = ReadSilicon(perf + "hopper_ttft_tpot_measured.csv");
  EXPECT_EQ(points.size(), 28u);
  const auto profile = ReadProfile(perf + "h200_llama31_8b_fp8_profile.json");
  EXPECT_EQ(profile.size(), 17u + 34);
  points.insert(points.end(), profile.begin(), profile.end());
  const auto rows = CheckModel(points);
  std::cout << ModelCheckTable(rows);
  ExpectWithinLimits(rows);
}

}  // namespace
}  // namespace hidane::sim
