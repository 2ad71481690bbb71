#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "gateway/config.h"

namespace hidane::gateway {
namespace {

TEST(DocsTest, TheCheckedInConfigurationIsCurrent) {
  const std::string path = std::string(HIDANE_SOURCE_DIR) + "/docs/config.md";
  if (std::getenv("HIDANE_WRITE_DOCS") != nullptr) std::ofstream(path) << ConfigDoc();
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), ConfigDoc()) << "run this test with HIDANE_WRITE_DOCS=1";
}

}  // namespace
}  // namespace hidane::gateway
