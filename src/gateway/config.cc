#include "gateway/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cctype>
#include <fstream>
#include <set>

#include "net/url.h"

namespace hidane::gateway {
namespace {

/// A file that parses but says something wrong: where, then what.
Status At(const ConfigSources& sources, const toml::node& node, const Error& error) {
  const auto begin = node.source().begin;
  return Fail(error.code,
              fmt::format("{}:{}:{}: {}", sources.file_name, begin.line, begin.column, error.what),
              error.param);
}

Error UnknownKey(std::string_view key, const std::vector<std::string_view>& known) {
  const std::string_view near = DidYouMean(key, known);
  std::string what = fmt::format("unknown key {}", key);
  if (!near.empty()) what += fmt::format("; did you mean {}?", near);
  return {Code::kInvalidArgument, std::move(what), std::string(key)};
}

std::vector<std::string_view> Names(const PropertySet& set) {
  std::vector<std::string_view> names;
  for (const PropertyBase* p : set.properties()) names.push_back(p->name());
  return names;
}

std::optional<PropertyValue> ValueOf(const toml::node& node) {
  if (const auto v = node.value_exact<bool>()) return *v;
  if (const auto v = node.value_exact<int64_t>()) return *v;
  if (const auto v = node.value_exact<double>()) return *v;
  if (const auto v = node.value_exact<std::string>()) return *v;
  return std::nullopt;
}

Status AssignNode(const ConfigSources& sources, PropertySet& set, const std::string& key,
                  const toml::node& node) {
  PropertyBase* property = set.Find(key);
  if (property == nullptr) return At(sources, node, UnknownKey(key, Names(set)));
  const auto value = ValueOf(node);
  if (!value)
    return At(sources, node, {Code::kInvalidArgument, key + ": must be a single value", key});
  if (auto status = property->Assign(*value, Origin::kFile); !status)
    return At(sources, node, status.error());
  return {};
}

Status ReadUpstreams(const ConfigSources& sources, const toml::node& node, Config& config) {
  const toml::array* tables = node.as_array();
  if (tables == nullptr)
    return At(sources, node, {Code::kInvalidArgument, "write [[upstream]], one per engine", ""});
  for (const toml::node& entry : *tables) {
    const toml::table* table = entry.as_table();
    if (table == nullptr)
      return At(sources, entry, {Code::kInvalidArgument, "upstream: must be a table", ""});
    auto upstream = std::make_unique<UpstreamConfig>();
    for (const auto& [key, value] : *table)
      HIDANE_CHECK_OK(AssignNode(sources, *upstream, std::string(key.str()), value));
    config.upstreams.push_back(std::move(upstream));
  }
  return {};
}

Status ReadTable(const ConfigSources& sources, const toml::table& table, const std::string& path,
                 Config& config) {
  for (const auto& [key, node] : table) {
    const std::string name = path + std::string(key.str());
    if (name == "upstream") {
      HIDANE_CHECK_OK(ReadUpstreams(sources, node, config));
    } else if (const toml::table* child = node.as_table()) {
      HIDANE_CHECK_OK(ReadTable(sources, *child, name + ".", config));
    } else {
      HIDANE_CHECK_OK(AssignNode(sources, config, name, node));
    }
  }
  return {};
}

Status ReadFile(const ConfigSources& sources, Config& config) {
  if (!sources.file_text) return {};
  try {
    const toml::table table = toml::parse(*sources.file_text, sources.file_name);
    return ReadTable(sources, table, "", config);
  } catch (const toml::parse_error& error) {
    const auto begin = error.source().begin;
    return Fail(Code::kInvalidArgument, fmt::format("{}:{}:{}: {}", sources.file_name, begin.line,
                                                    begin.column, error.description()));
  }
}

/// HIDANE_SERVER__LISTEN is server.listen; HIDANE_ names without `__` belong to others.
std::optional<std::string> KeyOfVariable(std::string_view variable) {
  constexpr std::string_view kPrefix = "HIDANE_";
  if (variable.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  variable.remove_prefix(kPrefix.size());
  if (variable.find("__") == std::string_view::npos) return std::nullopt;
  std::string key;
  for (size_t i = 0; i < variable.size(); ++i) {
    if (variable.substr(i, 2) == "__") {
      key += '.';
      ++i;
    } else {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(variable[i])));
    }
  }
  return key;
}

Status ReadEnvironment(const ConfigSources& sources, Config& config) {
  for (const auto& [variable, value] : sources.environment) {
    const auto key = KeyOfVariable(variable);
    if (!key) continue;
    PropertyBase* property = config.Find(*key);
    Status status = property != nullptr ? property->AssignText(value, Origin::kEnvironment)
                                        : Fail(UnknownKey(*key, Names(config)));
    if (!status) return Fail(status.error().code, variable + ": " + status.error().what, *key);
  }
  return {};
}

Status ReadSets(const ConfigSources& sources, Config& config) {
  for (const std::string& set : sources.sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos)
      return Fail(Code::kInvalidArgument, "--set " + set + ": write path.to.key=value");
    const std::string key = set.substr(0, equals);
    PropertyBase* property = config.Find(key);
    if (property == nullptr) return Fail(UnknownKey(key, Names(config)));
    HIDANE_CHECK_OK(property->AssignText(set.substr(equals + 1), Origin::kFlag));
  }
  return {};
}

Status ReadUpstreamFlags(const ConfigSources& sources, Config& config) {
  if (!sources.upstreams.empty()) config.upstreams.clear();
  for (const std::string& url : sources.upstreams) {
    auto upstream = std::make_unique<UpstreamConfig>();
    HIDANE_CHECK_OK(upstream->url.AssignText(url, Origin::kFlag));
    config.upstreams.push_back(std::move(upstream));
  }
  return {};
}

Status ResolveUrl(UpstreamConfig& upstream) {
  const std::string& text = upstream.url();
  HIDANE_TRY(const net::Url url, net::ParseUrl(text));
  if (!url.base.empty() && url.base != "/v1")
    return Fail(Code::kInvalidArgument, fmt::format("upstream url \"{}\": must have no path", text),
                "url");
  upstream.host = url.host;
  upstream.port = url.port;
  upstream.authority = url.Authority();
  return {};
}

Status ResolveKey(const ConfigSources& sources, UpstreamConfig& upstream) {
  const std::string& variable = upstream.api_key_env();
  const std::string& file = upstream.api_key_file();
  if (!variable.empty() && !file.empty())
    return Fail(Code::kInvalidArgument,
                "upstream " + upstream.url() + ": api_key_env and api_key_file exclude each other");
  if (!variable.empty()) {
    for (const auto& [name, value] : sources.environment)
      if (name == variable) upstream.api_key = value;
    if (upstream.api_key.empty())
      return Fail(Code::kInvalidArgument, "api_key_env: " + variable + " is not set");
  }
  if (!file.empty()) {
    std::ifstream in(file);
    if (!std::getline(in, upstream.api_key) || upstream.api_key.empty())
      return Fail(Code::kInvalidArgument, "api_key_file: can't read a key from " + file);
  }
  for (const char c : upstream.api_key)
    if (c <= ' ' || c == 0x7f)
      return Fail(Code::kInvalidArgument,
                  "upstream " + upstream.url() + ": its key has a character that no header allows");
  return {};
}

Status Resolve(const ConfigSources& sources, Config& config) {
  std::set<std::string> names;
  for (size_t i = 0; i < config.upstreams.size(); ++i) {
    UpstreamConfig& upstream = *config.upstreams[i];
    HIDANE_CHECK_OK(ResolveUrl(upstream));
    HIDANE_CHECK_OK(ResolveKey(sources, upstream));
    if (upstream.name().empty())
      HIDANE_CHECK_OK(upstream.name.AssignText(fmt::format("w{}", i), Origin::kDefault));
    for (const char c : upstream.name())
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.')
        return Fail(Code::kInvalidArgument, fmt::format("upstream name \"{}\": letters, digits, "
                                                        "'-', '_' and '.' only",
                                                        upstream.name()));
    if (!names.insert(upstream.name()).second)
      return Fail(Code::kInvalidArgument, "upstream name " + upstream.name() + " is used twice");
  }
  if (config.upstreams.empty())
    return Fail(Code::kInvalidArgument,
                "no engine: give --upstream http://host:port or an [[upstream]] table");
  return {};
}

}  // namespace

Result<std::unique_ptr<Config>> LoadConfig(const ConfigSources& sources) {
  auto config = std::make_unique<Config>();
  HIDANE_CHECK_OK(ReadFile(sources, *config));
  HIDANE_CHECK_OK(ReadEnvironment(sources, *config));
  HIDANE_CHECK_OK(ReadSets(sources, *config));
  HIDANE_CHECK_OK(ReadUpstreamFlags(sources, *config));
  HIDANE_CHECK_OK(Resolve(sources, *config));
  return config;
}

}  // namespace hidane::gateway
