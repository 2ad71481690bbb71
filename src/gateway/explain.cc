#include "gateway/explain.h"

#include <algorithm>
#include <vector>

#include "base/json_out.h"
#include "gateway/api.h"

namespace hidane::gateway {
namespace {

void WritePrompt(const prompt::Body& body, size_t bytes, const routing::Decision& decision,
                 prompt::PartOrder order, JsonWriter& w) {
  const prompt::Identity& id = body.identity;
  const uint32_t tokens = decision.prompt_tokens, fixed = decision.k1_tokens;
  w.Key("prompt").BeginObject().Field("model", id.model).Field("body_bytes", bytes);
  w.Field("tokens", tokens).Field("static_tokens", fixed);
  if (order == prompt::PartOrder::kToolsFirst && id.bytes() > 0) {
    const auto tools =
        static_cast<uint32_t>(uint64_t{tokens} * id.BytesAt(id.tools_end) / id.bytes());
    w.Field("tools_tokens", std::min(tools, fixed));
    w.Field("system_tokens", fixed - std::min(tools, fixed));
  }
  w.Field("conversation_tokens", tokens - fixed).Field("messages", id.message_ends.size());
  w.EndObject();
}

void WriteCandidates(const routing::Decision& decision, const Fleet& fleet, JsonWriter& w) {
  w.Key("candidates").BeginArray();
  for (const routing::Candidate& c : decision.candidates) {
    w.BeginObject().Field("worker", fleet.name(c.worker));
    w.Field("chosen", c.worker == decision.worker).Field("cached_tokens", c.cached_tokens);
    w.Field("ttft_s", c.ttft.total()).Field("wait_s", c.ttft.wait);
    w.Field("prefill_s", c.ttft.prefill).Field("interference_s", c.ttft.interference);
    w.Field("kv_wait_s", c.ttft.kv_wait).EndObject();
  }
  w.EndArray();
}

/// The workers that were no candidates, with what one asks about them then.
void WriteOthers(const routing::Decision& decision, const Fleet& fleet, JsonWriter& w) {
  w.Key("not_compared").BeginArray();
  for (const routing::WorkerView& view : fleet.Views()) {
    const auto& compared = decision.candidates;
    if (std::ranges::find(compared, view.id, &routing::Candidate::worker) != compared.end())
      continue;
    w.BeginObject().Field("worker", fleet.name(view.id));
    w.Field("health", routing::Name(view.health)).Field("draining", view.draining);
    w.EndObject();
  }
  w.EndArray();
}

}  // namespace

Result<std::string> Explain(Context& context, prompt::BodyReader& reader, std::string_view path,
                            std::string_view body) {
  const auto api = ApiOf(path);
  if (!api)
    return Fail(Code::kInvalidArgument, "no prompt is read on path " + std::string(path), "path");
  const prompt::ReadOptions options = ReadOptionsOf(*context.config);
  prompt::Body prompt;
  HIDANE_CHECK_OK(
      reader.Read(*api, body, body.size() + prompt::BodyReader::kPadding, options, prompt));
  HIDANE_CHECK_OK(context.fleet.CheckModel(prompt.identity.model));
  std::string policy;
  HIDANE_TRY(const routing::Decision decision,
             context.fleet.WithRouter([&](const routing::Router& router, TimePoint now) {
               policy = router.policy();
               return router.Explain({.identity = prompt.identity, .max_tokens = prompt.max_tokens},
                                     now);
             }));
  JsonWriter w;
  w.BeginObject().Field("worker", context.fleet.name(decision.worker));
  w.Field("decision", routing::Name(decision.rule)).Field("policy", policy);
  w.Field("cached_expected", decision.expected_cached).Field("ttft_s", decision.ttft.total());
  w.Field("flight", routing::Name(decision.flight)).Field("follow_s", decision.wait_s);
  WritePrompt(prompt, body.size(), decision, options.order, w);
  WriteCandidates(decision, context.fleet, w);
  WriteOthers(decision, context.fleet, w);
  w.EndObject();
  return w.Take();
}

}  // namespace hidane::gateway
