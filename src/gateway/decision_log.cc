#include "gateway/decision_log.h"

#include <utility>

#include "base/json_out.h"

namespace hidane::gateway {

void AppendJson(const DecisionRecord& record, std::string& out) {
  std::string decision;
  routing::AppendJson(record.decision, decision);
  JsonWriter w;
  w.BeginObject();
  w.Field("request_id", record.request_id).Field("worker", record.worker);
  w.Field("status", record.status).Field("ttft_s", record.ttft_s);
  w.Key("usage");
  if (record.usage) {
    w.BeginObject().Field("prompt_tokens", record.usage->prompt_tokens);
    w.Field("cached_tokens", record.usage->cached_tokens);
    w.Field("completion_tokens", record.usage->completion_tokens).EndObject();
  } else {
    w.Null();
  }
  w.Key("regret");
  if (record.regret) {
    w.BeginObject().Field("cached_tokens", record.regret->cached_tokens);
    w.Field("ttft_s", record.regret->ttft_s).EndObject();
  } else {
    w.Null();
  }
  w.Key("decision").Raw(decision).EndObject();
  out += w.str();
}

void DecisionLog::Add(DecisionRecord record) {
  const std::lock_guard lock(mutex_);
  records_.push_front(std::move(record));
  if (records_.size() > kept_) records_.pop_back();
}

std::string DecisionLog::Json(size_t n) const {
  std::deque<DecisionRecord> newest;
  {
    const std::lock_guard lock(mutex_);
    newest.assign(records_.begin(), records_.begin() + std::min(n, records_.size()));
  }
  std::string out = "{\"decisions\":[";
  for (const DecisionRecord& record : newest) {
    if (out.back() != '[') out += ',';
    AppendJson(record, out);
  }
  return out + "]}";
}

}  // namespace hidane::gateway
