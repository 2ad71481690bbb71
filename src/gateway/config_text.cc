#include <fmt/format.h>

#include "base/json_out.h"
#include "gateway/config.h"

namespace hidane::gateway {
namespace {

std::string_view TableOf(std::string_view key) {
  return key.substr(0, key.find('.'));
}
std::string_view LeafOf(std::string_view key) {
  return key.substr(key.find('.') + 1);
}

void PrintLine(std::string& out, std::string_view key, const PropertyBase& p) {
  const std::string line = fmt::format("{} = {}", key, p.ValueText());
  out += fmt::format("{:<44} # {}\n", line, OriginName(p.origin()));
}

void DocTable(std::string& out, const PropertySet& set, std::string_view table) {
  out +=
      "| key | type | default | allowed | takes effect | what it does |\n"
      "|---|---|---|---|---|---|\n";
  for (const PropertyBase* p : set.properties()) {
    if (!table.empty() && TableOf(p->name()) != table) continue;
    out += fmt::format("| `{}` | {} | `{}` | {} | {} | {} |\n", p->name(), p->TypeName(),
                       p->DefaultText(), p->RangeText(),
                       p->reload() == Reload::kLive ? "live" : "at start", p->help());
  }
}

}  // namespace

std::string PrintConfig(const Config& config) {
  std::string out;
  std::string_view table;
  for (const PropertyBase* p : config.properties()) {
    if (TableOf(p->name()) != table) {
      out += table.empty() ? "" : "\n";
      table = TableOf(p->name());
      out += fmt::format("[{}]\n", table);
    }
    PrintLine(out, LeafOf(p->name()), *p);
  }
  for (const auto& upstream : config.upstreams) {
    out += "\n[[upstream]]\n";
    for (const PropertyBase* p : upstream->properties())
      if (p->ValueText() != p->DefaultText()) PrintLine(out, p->name(), *p);
  }
  return out;
}

std::string ConfigJson(const Config& config) {
  JsonWriter w;
  w.BeginObject();
  for (const PropertyBase* p : config.properties()) {
    w.Key(p->name()).BeginObject().Key("value").Raw(p->ValueText());
    w.Field("origin", OriginName(p->origin())).EndObject();
  }
  w.Key("upstreams").BeginArray();
  for (const auto& upstream : config.upstreams) w.String(upstream->name());
  w.EndArray().EndObject();
  return w.Take();
}

std::string ConfigDoc() {
  const Config config;
  const UpstreamConfig upstream;
  std::string out =
      "# Configuration of `hidane gateway`\n\n"
      "Written from `src/gateway/config.h`; a test says so when it is out of date.\n\n"
      "Every key is optional. A value comes from, later wins: its default, `hidane.toml`\n"
      "(`-c FILE`), the environment (`HIDANE_SERVER__LISTEN` is `server.listen`), a flag\n"
      "(`--set server.listen=0.0.0.0:80`). `--check` validates and exits; `--print-config` shows\n"
      "the values in force with their origin. An unknown key is an error.\n\n"
      "```toml\n[server]\nlisten = \"0.0.0.0:8080\"\n\n[[upstream]]\nurl = "
      "\"http://10.0.0.1:8000\"\n\n[[upstream]]\nurl = \"http://10.0.0.2:8000\"\napi_key_env = "
      "\"ENGINE_KEY\"\n```\n";
  std::string_view table;
  for (const PropertyBase* p : config.properties()) {
    if (TableOf(p->name()) == table) continue;
    table = TableOf(p->name());
    out += fmt::format("\n## [{}]\n\n", table);
    DocTable(out, config, table);
  }
  out += "\n## [[upstream]]\n\nOne per engine, or `--upstream URL` for each.\n\n";
  DocTable(out, upstream, "");
  return out;
}

}  // namespace hidane::gateway
