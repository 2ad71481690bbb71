#pragma once
#include <functional>
#include <string>

#include "cli/terminal.h"
#include "load/runner.h"

namespace hidane::cli {

/// Shows a run on `line` ("round_robin  42/160  hit 31 %  1.6/s"), which must outlive it, and ends
/// the run on Ctrl-C or SIGTERM.
std::function<bool(const load::Progress&)> ShowProgress(ProgressLine& line, std::string label);

}  // namespace hidane::cli
