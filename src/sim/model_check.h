#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/gpu.h"

namespace hidane::sim {

/// A time that somebody measured on a real engine.
struct MeasuredPoint {
  enum class What : uint8_t {
    kTtft,        ///< of a cold prompt of `tokens`
    kDecodeStep,  ///< of `seqs` sequences with `tokens` each in the KV cache
  };
  What what = What::kTtft;
  std::string_view setup;  ///< a name for FindGpuSetup
  uint32_t gpus = 1;       ///< in place of the setup's own number
  double tokens = 0;
  double seqs = 1;
  double measured_s = 0;
  std::string_view source;
};

/// A point and what the step model says of it.
struct ModelCheckRow {
  MeasuredPoint point;
  double model_s = 0;
  double error = 0;  ///< model_s / measured_s - 1
  double limit = 0;  ///< of |error|; 0: none is promised
  bool ok() const { return limit == 0 || (error <= limit && -error <= limit); }
};

/// Points from two public data sets, as the research note on workloads quotes them.
std::span<const MeasuredPoint> MeasuredPoints();
/// One row a point. Promised for the time to the first token: 16 % from 1,000 tokens, 6 % from
/// 8,000, 8 % from 10,000. REQUIRES: each setup is one of GpuSetups().
std::vector<ModelCheckRow> CheckModel(std::span<const MeasuredPoint> points);
/// As a table for people, the mean |error| of each kind below.
std::string ModelCheckTable(std::span<const ModelCheckRow> rows);

}  // namespace hidane::sim
