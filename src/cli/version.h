#pragma once
#include <string>

namespace hidane::cli {

std::string Version();      ///< "0.1.0"
std::string Commit();       ///< of the tree it was built from: "1e35fa5", "1e35fa5+", or ""
std::string VersionLine();  ///< "hidane 0.1.0 (1e35fa5)"

}  // namespace hidane::cli
