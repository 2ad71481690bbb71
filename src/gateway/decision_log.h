#pragma once
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/usage.h"
#include "routing/decision.h"

namespace hidane::gateway {

/// What became of one routed request; `/hidane/decisions` shows it beside the decision.
struct DecisionRecord {
  std::string request_id;
  routing::Decision decision;
  std::string worker;  ///< name
  int status = 0;
  double ttft_s = 0;  ///< 0: no byte came
  std::optional<Usage> usage;
  std::optional<routing::Regret> regret;
};

/// The last decisions, newest first. Bounded; thread-safe.
class DecisionLog {
 public:
  explicit DecisionLog(size_t kept) : kept_(kept) {}
  void Add(DecisionRecord record);
  /// {"decisions":[...]}: the newest `n`.
  std::string Json(size_t n) const;

 private:
  size_t kept_;
  mutable std::mutex mutex_;
  std::deque<DecisionRecord> records_;
};

/// Appends one record as a JSON object.
void AppendJson(const DecisionRecord& record, std::string& out);

}  // namespace hidane::gateway
