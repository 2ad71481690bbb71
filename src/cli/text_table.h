#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hidane::cli {

/// One line of cells. Lines of a table have equally many.
using Cells = std::vector<std::string>;

/// A table whose columns line up, two spaces between them: the first `left` ones to the left, the
/// rest to the right. Text is UTF-8, a character a column. No white space at the ends of lines.
std::string TextTable(std::span<const Cells> lines, size_t left);

}  // namespace hidane::cli
