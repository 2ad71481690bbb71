#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "quality.h"
#include "rows.h"

namespace hidane::bench {

struct RealOptions {
  std::string model;   ///< GGUF file
  std::string text;    ///< plain text to predict and to hide needles in
  bool quick = false;  ///< fewer shares, no masked reference, no needles
  uint32_t threads = 2;
};

struct RealResults {
  std::vector<Row> rows;
  std::vector<QualityRow> quality;
};

/// The shipped policies on a real model: their victims under all mechanisms, and what becomes of
/// the answers. In f32. kInvalidArgument when the text is too short; errors of the files.
Result<RealResults> RunReal(const RealOptions& options);

}  // namespace hidane::bench
