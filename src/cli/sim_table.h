#pragma once
#include <span>
#include <string>

#include "sim/row.h"

namespace hidane::cli {

/// A table whose columns line up: cells of the same phase and fleet together, a blank line between
/// groups; intervals where a row is the mean of several runs. Columns that would say the same or
/// nothing in every row are left out.
std::string SimTable(std::span<const sim::Summary> rows);

/// `{"meta":{...},"rows":[...]}`; `meta` is a JSON object.
std::string SimJson(std::string_view meta, std::span<const sim::Summary> rows);

}  // namespace hidane::cli
