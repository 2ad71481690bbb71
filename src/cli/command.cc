#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace hidane::cli {

Exit Report(const Error& error, std::string_view hint) {
  fmt::print(stderr, "hidane: {}{}{}\n", error.what, hint.empty() ? "" : "; ", hint);
  switch (error.code) {
    case Code::kInvalidArgument:
    case Code::kTooLarge:
      return Exit::kUsage;
    default:
      return Exit::kMissing;
  }
}

std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline");
  std::string line;
  for (std::string word; std::getline(file, word, '\0');) {
    if (line.empty()) word = std::filesystem::path(word).filename().string();
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

Status WriteDocument(const std::string& path, std::string_view document) {
  if (path == "-") {
    fmt::print("{}\n", document);
    return {};
  }
  std::ofstream file(path);
  file << document << '\n';
  file.close();
  if (!file) return Fail(Code::kUnavailable, fmt::format("cannot write {}", path));
  return {};
}

Result<std::string> CacheDir(std::string_view below) {
  namespace fs = std::filesystem;
  const char *xdg = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path dir = xdg != nullptr && *xdg != 0     ? fs::path(xdg)
                 : home != nullptr && *home != 0 ? fs::path(home) / ".cache"
                                                 : fs::temp_directory_path();
  dir /= "hidane";
  dir /= below;
  std::error_code error;
  fs::create_directories(dir, error);
  if (error || access(dir.c_str(), W_OK) != 0) {
    return Fail(Code::kUnavailable, fmt::format("cannot write in {}", dir.string()));
  }
  return dir.string();
}

}  // namespace hidane::cli
