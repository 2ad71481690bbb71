#include "routing/decision.h"

#include "base/json_out.h"

namespace hidane::routing {
namespace {

void Terms(const Ttft& ttft, JsonWriter& w) {
  w.Field("ttft_s", ttft.total()).Field("wait_s", ttft.wait).Field("prefill_s", ttft.prefill);
  w.Field("interference_s", ttft.interference).Field("kv_wait_s", ttft.kv_wait);
}

}  // namespace

std::string_view Name(Flight flight) {
  switch (flight) {
    case Flight::kGo:
      return "go";
    case Flight::kLead:
      return "lead";
    case Flight::kFollow:
      return "follow";
  }
  return "";
}

std::string_view Name(Rule rule) {
  switch (rule) {
    case Rule::kHome:
      return "home";
    case Rule::kBalance:
      return "balance";
    case Rule::kSticky:
      return "sticky";
    case Rule::kPlaced:
      return "placed";
    case Rule::kFailover:
      return "failover";
    case Rule::kOnly:
      return "only";
    case Rule::kRefresh:
      return "refresh";
    case Rule::kPolicy:
      return "policy";
  }
  return "";
}

void AppendJson(const Decision& decision, std::string& out) {
  JsonWriter w;
  w.BeginObject();
  w.Field("ticket", decision.ticket.value()).Field("worker", decision.worker.value());
  w.Field("rule", Name(decision.rule)).Field("flight", Name(decision.flight));
  w.Field("prompt_tokens", decision.prompt_tokens);
  w.Field("expected_cached", decision.expected_cached);
  Terms(decision.ttft, w);
  w.Key("candidates").BeginArray();
  for (const Candidate& c : decision.candidates) {
    w.BeginObject().Field("worker", c.worker.value()).Field("cached_tokens", c.cached_tokens);
    Terms(c.ttft, w);
    w.Field("decode_s", c.decode_s).Field("recent_prefill_s", c.recent_prefill_s);
    w.EndObject();
  }
  w.EndArray().EndObject();
  out += w.Take();
}

}  // namespace hidane::routing
