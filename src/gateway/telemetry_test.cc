#include "gateway/telemetry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hidane::gateway {
namespace {

TEST(TelemetryTest, ReadsWhatVllmWrites) {
  const EngineMetrics m = ReadEngineMetrics(
      "# HELP vllm:num_requests_running x\n"
      "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 2.0\n"
      "vllm:num_requests_waiting{model_name=\"a } b\"} 1.0\r\n"
      "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",num_gpu_blocks=\"1000\"} 1.0\n"
      "vllm:prompt_tokens_total{model_name=\"m\"} 1.5e3\n"
      "process_start_time_seconds 1.7e9\n");
  EXPECT_EQ(m.running, 5u);
  EXPECT_EQ(m.waiting, 1u);
  EXPECT_EQ(m.kv_capacity_tokens, 16'000u);
  EXPECT_EQ(m.prompt_tokens, 1500.0);
  EXPECT_EQ(m.start_time_s, 1.7e9);
}

TEST(TelemetryTest, ReadsWhatSglangWrites) {
  const EngineMetrics m =
      ReadEngineMetrics("sglang:num_running_reqs 2\nsglang_max_total_num_tokens{x=\"y\"} 5000\n");
  EXPECT_EQ(m.running, 2u);
  EXPECT_EQ(m.kv_capacity_tokens, 5000u);
}

TEST(TelemetryTest, NonsenseIsSkipped) {
  const EngineMetrics m = ReadEngineMetrics(
      "vllm:num_requests_running NaN\nvllm:num_requests_running -1\nvllm:num_requests_waiting\n"
      "vllm:cache_config_info{block_size=\"None\",num_gpu_blocks=\"1\"} 1\n{} 1\nx{ 1\n"
      "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1e300\"} 1\n");
  EXPECT_FALSE(m.running || m.waiting || m.kv_capacity_tokens);
}

TEST(TelemetryTest, ARestartShowsInStartTimeOrInACounterThatGoesBack) {
  const auto at = [](double start, double tokens) {
    EngineMetrics m;
    m.start_time_s = start;
    m.prompt_tokens = tokens;
    return m;
  };
  EXPECT_FALSE(Restarted(at(1, 5), at(1, 5)));
  EXPECT_FALSE(Restarted(at(1, 5), at(1, 6)));
  EXPECT_TRUE(Restarted(at(1, 5), at(2, 6)));
  EXPECT_TRUE(Restarted(at(1, 5), at(1, 4)));
  EXPECT_FALSE(Restarted({}, at(1, 4)));
  EXPECT_FALSE(Restarted(at(1, 4), {}));
}

RC_GTEST_PROP(TelemetryProperty, NoTextBreaksIt, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("vllm:cache_config_info{\"=}, \n1e9")));
  (void)ReadEngineMetrics(text);
}

}  // namespace
}  // namespace hidane::gateway
