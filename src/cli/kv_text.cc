#include "cli/kv_text.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <vector>

namespace hidane::cli {
namespace {

using simdjson::dom::element;

uint64_t Number(element object, const char* key) {
  uint64_t value = 0;
  return object[key].get(value) ? 0 : value;
}

/// One of nine heights for a share in percent; nothing is shown as nothing only if it is nothing.
const char* Bar(double percent) {
  static constexpr const char* kBars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (percent <= 0) return kBars[0];
  return kBars[std::clamp(static_cast<int>(percent / 12.5 + 0.5), 1, 8)];
}

/// `values` by at most `columns` bars, each the mean of its part.
std::string Bars(const std::vector<double>& values, size_t columns) {
  const size_t n = std::min(columns, values.size());
  std::string out;
  for (size_t i = 0; i < n; ++i) {
    const size_t from = i * values.size() / n, to = (i + 1) * values.size() / n;
    double sum = 0;
    for (size_t j = from; j < to; ++j) sum += values[j];
    out += Bar(sum / static_cast<double>(to - from));
  }
  return out;
}

std::string SequenceText(element seq, uint64_t block_size, size_t columns) {
  std::string_view policy;
  if (seq["policy"].get(policy)) policy = "none";
  const uint64_t tokens = Number(seq, "tokens"), slots = Number(seq, "slots");
  const uint64_t blocks = Number(seq, "blocks"), unmoved = Number(seq, "blocks_unmoved");
  std::string out = fmt::format("\n#{}  policy {}: {} tokens, {} live, {} blocks",
                                Number(seq, "id"), policy, tokens, slots, blocks);
  if (unmoved > blocks) out += fmt::format(" ({} if none had moved)", unmoved);
  std::vector<double> live, table;
  simdjson::dom::array stretches;
  if (!seq["live"].get(stretches)) {
    for (const element stretch : stretches) live.push_back(double(stretch));
  }
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t begin = std::min(slots, i * block_size);
    table.push_back(100.0 * static_cast<double>(std::min(slots - begin, block_size)) /
                    static_cast<double>(block_size));
  }
  // The table to the scale of the stream.
  const size_t stream_columns = std::min(columns, std::max(live.size(), table.size()));
  const size_t table_columns =
      live.size() <= columns ? columns : std::max<size_t>(1, columns * table.size() / live.size());
  out += fmt::format("\n  stream |{}|", Bars(live, stream_columns));
  out += fmt::format("\n  blocks |{}|\n", Bars(table, table_columns));
  return out;
}

}  // namespace

Result<std::string> KvText(std::string_view json, size_t columns) {
  simdjson::dom::parser parser;
  element map;
  simdjson::dom::array sequences;
  if (parser.parse(simdjson::padded_string(json)).get(map) || map["sequences"].get(sequences)) {
    return Fail(Code::kInvalidArgument, "not an engine's /hidane/kv");
  }
  const uint64_t blocks = Number(map, "blocks"), free = Number(map, "blocks_free");
  const size_t width = std::max<size_t>(columns, 40) - 12;
  const uint64_t held = blocks - std::min(free, blocks);
  const size_t full = blocks == 0 ? 0 : held * width / blocks;
  std::string out = fmt::format("{} of {} blocks of {} held, {} in the prefix cache\n", held,
                                blocks, Number(map, "block_size"), Number(map, "blocks_published"));
  out += "  memory |";
  for (size_t i = 0; i < width; ++i) out += i < full ? "█" : "·";
  out += "|\n";
  for (const element seq : sequences) {
    out += SequenceText(seq, std::max<uint64_t>(1, Number(map, "block_size")), width);
  }
  return out;
}

}  // namespace hidane::cli
