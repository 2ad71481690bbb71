#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "vtoken/policy.h"

namespace hidane::engine {

/// Parameters for tests of what holds under every shipped policy.
inline std::vector<std::string> EveryPolicy() {
  const auto names = vtoken::PolicyNames();
  return {names.begin(), names.end()};
}

/// A parameter as a part of the test's name.
inline std::string PolicyTestName(const testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::erase(name, '-');
  return name;
}

}  // namespace hidane::engine
