#include <fmt/format.h>
#include <simdjson.h>

#include "load/workload.h"

namespace hidane::load {
namespace {

constexpr int64_t kTraceBlock = 512;
constexpr size_t kBlocksMax = 1 << 16;

/// One line of the trace; false when a field is missing or out of range.
bool ParseLine(simdjson::dom::parser& parser, std::string_view line, PlannedRequest& out) {
  simdjson::dom::element doc;
  int64_t at_ms = 0, input = 0, output = 0;
  simdjson::dom::array ids;
  if (parser.parse(simdjson::padded_string(line)).get(doc) || doc["timestamp"].get(at_ms) ||
      doc["input_length"].get(input) || doc["output_length"].get(output) ||
      doc["hash_ids"].get(ids)) {
    return false;
  }
  if (at_ms < 0 || input < 1 || input > 10'000'000 || output < 0 || output > 1'000'000 ||
      ids.size() > kBlocksMax) {
    return false;
  }
  out.tenant = kNoTenant;
  out.at = std::chrono::milliseconds(at_ms);
  out.output_tokens = static_cast<uint32_t>(std::max<int64_t>(output, 1));
  // The last, partial block is the request's own text.
  const auto whole = static_cast<size_t>(input / kTraceBlock);
  for (const simdjson::dom::element id : ids) {
    int64_t value = 0;
    if (id.get(value)) return false;
    if (out.blocks.size() < whole) out.blocks.push_back(static_cast<uint64_t>(value));
    out.own_seed = static_cast<uint64_t>(value);
  }
  out.own_tokens = static_cast<uint32_t>(std::max<int64_t>(input % kTraceBlock, 1));
  return true;
}

}  // namespace

Result<std::vector<PlannedRequest>> ParseTrace(std::string_view jsonl, uint32_t requests) {
  simdjson::dom::parser parser;
  std::vector<PlannedRequest> plan;
  for (size_t line_no = 1; !jsonl.empty() && plan.size() < requests; ++line_no) {
    const size_t end = std::min(jsonl.find('\n'), jsonl.size());
    const std::string_view line = jsonl.substr(0, end);
    jsonl.remove_prefix(std::min(end + 1, jsonl.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    PlannedRequest request;
    if (!ParseLine(parser, line, request)) {
      return Fail(Code::kInvalidArgument, fmt::format("trace line {} is not a request", line_no));
    }
    plan.push_back(std::move(request));
  }
  if (plan.empty()) return Fail(Code::kInvalidArgument, "trace holds no request");
  return plan;
}

}  // namespace hidane::load
