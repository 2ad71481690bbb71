#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/signals.h"

namespace hidane::cli {

std::function<bool(const load::Progress&)> ShowProgress(ProgressLine& line, std::string label) {
  return [&line, label = std::move(label)](const load::Progress& p) {
    const double prompt = std::max<double>(1, static_cast<double>(p.prompt_tokens));
    line.Show(fmt::format("{}: {}/{} requests, hit {:.0f} %, {:.1f}/s{}", label, p.done, p.total,
                          100 * static_cast<double>(p.cached_tokens) / prompt,
                          p.done / std::max(p.elapsed_s, 1e-3),
                          p.errors > 0 ? fmt::format(", {} errors", p.errors) : ""));
    return !WaitForStop(std::chrono::milliseconds(0));
  };
}

}  // namespace hidane::cli
