#include "cli/text_table.h"

#include <algorithm>

namespace hidane::cli {
namespace {

size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string TextTable(std::span<const Cells> lines, size_t left) {
  std::vector<size_t> widths;
  for (const Cells& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], Width(line[c]));
  }
  std::string out;
  for (const Cells& line : lines) {
    std::string text;
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string space(widths[c] - Width(line[c]), ' ');
      text += (c > 0 ? "  " : "") + (c < left ? line[c] + space : space + line[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

}  // namespace hidane::cli
