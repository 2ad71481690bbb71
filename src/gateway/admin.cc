#include "gateway/admin.h"

#include <simdjson.h>

#include <charconv>
#include <optional>
#include <utility>

#include "base/json_out.h"
#include "base/log.h"
#include "gateway/explain.h"
#include "gateway/respond.h"

namespace hidane::gateway {
namespace {

constexpr size_t kDecisionsDefault = 20;

constexpr std::string_view kExplainPath = "/v1/chat/completions";

/// The value of `key` in a query, as it is spelled there.
std::optional<std::string_view> QueryValue(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.substr(0, key.size()) == key && pair.substr(key.size(), 1) == "=")
      return pair.substr(key.size() + 1);
  }
  return std::nullopt;
}

size_t QueryNumber(std::string_view query, std::string_view key, size_t otherwise) {
  const std::string_view text = QueryValue(query, key).value_or("");
  size_t n = 0;
  const bool good = std::from_chars(text.data(), text.data() + text.size(), n).ec == std::errc();
  return good ? n : otherwise;
}

}  // namespace

Admin::Admin(Context& context) : context_(context) {}

net::Task<> Admin::Handle(net::Exchange& exchange) {
  const std::string path(exchange.head().path());
  auto body =
      co_await exchange.ReadBody(static_cast<size_t>(context_.config->limits_body_bytes_max()));
  if (!body) {
    (void)co_await RespondError(exchange, body.error(), {});
    co_return;
  }
  if (path == "/metrics") {
    co_await SendMetrics(exchange);
    co_return;
  }
  const std::string_view query = exchange.head().query();
  const bool post = exchange.head().method == "POST";
  Result<std::string> json = Fail(Code::kNotFound, "no such route: " + path);
  if (path == "/health")
    json = R"({"status":"ok"})";
  else if (path == "/hidane/workers")
    json = context_.fleet.Workers();
  else if (path == "/hidane/config")
    json = ConfigJson(*context_.config);
  else if (path == "/hidane/policy")
    json = post ? SetPolicy(body->view()) : Policy();
  else if (path == "/hidane/explain" && post)
    json =
        Explain(context_, reader_, QueryValue(query, "path").value_or(kExplainPath), body->view());
  else if (path == "/hidane/decisions")
    json = context_.decisions.Json(QueryNumber(query, "n", kDecisionsDefault));
  co_await Answer(exchange, std::move(json));
}

net::Task<> Admin::Answer(net::Exchange& exchange, Result<std::string> json) {
  if (json)
    (void)co_await RespondJson(exchange, 200, std::move(*json));
  else
    (void)co_await RespondError(exchange, json.error(), {});
}

net::Task<> Admin::SendMetrics(net::Exchange& exchange) {
  net::ResponseHead head;
  head.headers.Add("content-type", "text/plain; version=0.0.4; charset=utf-8");
  const std::string text = context_.registry.Scrape();
  (void)co_await exchange.Respond(std::move(head), text);
}

std::string Admin::Policy() {
  JsonWriter w;
  context_.fleet.WithRouter([&](const routing::Router& router, TimePoint) {
    w.BeginObject().Field("policy", router.policy()).Key("policies").BeginArray();
    for (const std::string_view name : routing::Router::Policies()) w.String(name);
    w.EndArray().EndObject();
  });
  return w.Take();
}

Result<std::string> Admin::SetPolicy(std::string_view body) {
  simdjson::dom::parser parser;
  std::string_view name;
  if (parser.parse(body.data(), body.size())["policy"].get(name) != simdjson::SUCCESS)
    return Fail(Code::kInvalidArgument, R"(send {"policy":"NAME"})", "policy");
  HIDANE_CHECK_OK(context_.fleet.WithRouter(
      [&](routing::Router& router, TimePoint) { return router.SetPolicy(name); }));
  log::Info("policy.changed", {{"policy", name}});
  return Policy();
}

void AddFleetMetrics(Context& context) {
  struct Gauges {
    obs::Gauge *up, *in_flight, *assigned, *capacity;
  };
  std::vector<Gauges> gauges;
  obs::Registry& r = context.registry;
  for (uint32_t i = 0; i < context.fleet.size(); ++i) {
    const obs::Labels labels = {{"worker", std::string(context.fleet.name(WorkerId(i)))}};
    gauges.push_back({
        &r.gauge("hidane_worker_up", "1 while the worker may take requests.", labels),
        &r.gauge("hidane_worker_in_flight", "Requests routed to it and not ended.", labels),
        &r.gauge("hidane_worker_assigned_tokens", "Static prefix tokens at home here.", labels),
        &r.gauge("hidane_worker_kv_capacity_tokens", "KV memory, in tokens.", labels),
    });
  }
  r.OnScrape([&context, gauges] {
    for (const routing::WorkerView& view : context.fleet.Views()) {
      const Gauges& g = gauges[view.id.value()];
      g.up->Set(view.health == routing::HealthState::kUp ? 1 : 0);
      g.in_flight->Set(view.in_flight);
      g.assigned->Set(static_cast<double>(view.assigned_tokens));
      g.capacity->Set(static_cast<double>(view.kv_capacity_tokens));
    }
  });
}

}  // namespace hidane::gateway
