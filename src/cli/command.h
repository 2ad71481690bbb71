#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace hidane::cli {

/// What `hidane` exits with (contracts section 2).
enum class Exit : int {
  kDone = 0,
  kNotSo = 1,    ///< the thing checked is not so
  kUsage = 2,    ///< bad usage or configuration
  kMissing = 3,  ///< a dependency is missing or unreachable
};

/// Each adds its subcommand to `app`; when it was the one called, it runs inside app.parse() and
/// leaves its exit code in `exit`.
void AddUp(CLI::App& app, Exit& exit);
void AddGateway(CLI::App& app, Exit& exit);
void AddEngine(CLI::App& app, Exit& exit);
void AddLoad(CLI::App& app, Exit& exit);
void AddSim(CLI::App& app, Exit& exit);
void AddExplain(CLI::App& app, Exit& exit);

/// Says `hidane: what went wrong; what to do` in one line on stderr and picks the exit code: kUsage
/// for a wrong value, kMissing for what is absent or unreachable.
Exit Report(const Error& error, std::string_view hint = {});

/// This process's command line as typed, the program's folder left out.
std::string CommandLine();

/// Writes a result document to a file, `-` = stdout; one line that says what is wrong on failure.
Status WriteDocument(const std::string& path, std::string_view document);

/// Where Hidane keeps what it can make again: $XDG_CACHE_HOME/hidane or ~/.cache/hidane, created;
/// kUnavailable, naming the folder, if it can't be written.
Result<std::string> CacheDir(std::string_view below);

}  // namespace hidane::cli
