#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/property.h"

namespace hidane::gateway {

/// One engine behind the gateway: a `[[upstream]]` table of hidane.toml.
struct UpstreamConfig : PropertySet {
  Property<std::string> url{
      *this, "url", "", Reload::kRestart,
      "Where the engine listens: `http://host:port`. A trailing `/` or `/v1` is allowed."};
  Property<std::string> name{
      *this, "name", "", Reload::kRestart,
      "What clients and metrics see instead of the address. Empty: `w0`, `w1`, ... by position."};
  Property<std::string> api_key_env{
      *this, "api_key_env", "", Reload::kRestart,
      "Environment variable that holds the engine's own key, sent as `Authorization: Bearer`."};
  Property<std::string> api_key_file{
      *this, "api_key_file", "", Reload::kRestart,
      "File that holds the engine's own key. Not together with `api_key_env`."};
  Property<int64_t> kv_capacity_tokens{
      *this,
      "kv_capacity_tokens",
      0,
      0,
      1'000'000'000,
      Reload::kRestart,
      "KV memory of the engine. Unit: tokens. 0: ask its `/metrics`."};

  // Resolved by LoadConfig.
  std::string host;
  std::string authority;  ///< `host:port`, for Host
  uint16_t port = 0;
  std::string api_key;  ///< never printed
};

/// Everything `hidane gateway` can be told, with its defaults: name, default, range, reload class
/// and help of a key live here and nowhere else. docs/config.md is written from it.
struct Config : PropertySet {
  Property<std::string> server_listen{
      *this, "server.listen", "127.0.0.1:8080", Reload::kRestart,
      "Address of the data listener: `/v1/*`, `/health`, `/ready`. `host:port`, port 0 picks one."};
  Property<int64_t> server_threads{*this,
                                   "server.threads",
                                   0,
                                   0,
                                   256,
                                   Reload::kRestart,
                                   "Event loops, one thread each. 0: one per core."};
  Property<int64_t> server_connections_max{
      *this,
      "server.connections_max",
      8'192,
      1,
      1'000'000,
      Reload::kRestart,
      "Open client connections per thread; more wait in the backlog."};
  Property<int64_t> server_drain_ms{*this,
                                    "server.drain_ms",
                                    30'000,
                                    0,
                                    3'600'000,
                                    Reload::kRestart,
                                    "After SIGTERM: longest wait for streams to end. Unit: ms."};
  Property<std::string> admin_listen{
      *this, "admin.listen", "127.0.0.1:8081", Reload::kRestart,
      "Address of the admin listener: `/metrics`, `/hidane/*`. Keep it on loopback or behind a "
      "firewall: it has no authentication. Empty: none."};

  Property<int64_t> limits_body_bytes_max{*this,
                                          "limits.body_bytes_max",
                                          33'554'432,
                                          1'024,
                                          1'073'741'824,
                                          Reload::kRestart,
                                          "Largest request body; larger is 413. Unit: bytes."};
  Property<int64_t> limits_header_bytes_max{*this,
                                            "limits.header_bytes_max",
                                            65'536,
                                            1'024,
                                            1'048'576,
                                            Reload::kRestart,
                                            "Largest request head; larger is 431. Unit: bytes."};
  Property<int64_t> limits_held_bytes_max{
      *this,
      "limits.held_bytes_max",
      65'536,
      1'024,
      16'777'216,
      Reload::kRestart,
      "Longest part of an unfinished SSE event that is held back to see whether it is the usage "
      "event; a longer event passes unread. Unit: bytes."};
  Property<int64_t> limits_decisions_kept{*this,
                                          "limits.decisions_kept",
                                          256,
                                          0,
                                          65'536,
                                          Reload::kRestart,
                                          "Decisions that `/hidane/decisions` remembers."};
  Property<int64_t> limits_static_bytes_max{
      *this,
      "limits.static_bytes_max",
      256 << 20,
      0,
      int64_t{1} << 40,
      Reload::kRestart,
      "Static parts of prompts that are kept for `routing.keep_warm`. Unit: bytes."};

  Property<int64_t> timeouts_connect_ms{
      *this,
      "timeouts.connect_ms",
      1'000,
      1,
      60'000,
      Reload::kRestart,
      "Longest wait for an engine to accept a connection. Unit: ms."};
  Property<int64_t> timeouts_first_byte_ms{
      *this,
      "timeouts.first_byte_ms",
      120'000,
      1,
      3'600'000,
      Reload::kRestart,
      "Longest silence of an engine before its answer begins: 504. Unit: ms."};
  Property<int64_t> timeouts_stream_idle_ms{
      *this,
      "timeouts.stream_idle_ms",
      60'000,
      1,
      3'600'000,
      Reload::kRestart,
      "Longest silence of an engine within an answer; then the stream ends with an error event. "
      "Unit: ms."};
  Property<int64_t> timeouts_client_ms{
      *this,
      "timeouts.client_ms",
      30'000,
      1,
      3'600'000,
      Reload::kRestart,
      "Longest wait for a client to send its head, the next part of its body, or to read. "
      "Unit: ms."};
  Property<int64_t> timeouts_client_idle_ms{
      *this,
      "timeouts.client_idle_ms",
      75'000,
      1,
      3'600'000,
      Reload::kRestart,
      "Kept-alive client connections close after this. Unit: ms."};
  Property<int64_t> timeouts_upstream_idle_ms{
      *this,
      "timeouts.upstream_idle_ms",
      4'000,
      0,
      3'600'000,
      Reload::kRestart,
      "Idle connections to engines are dropped after this; below the engine's own keep-alive "
      "(uvicorn: 5 s). Unit: ms."};

  Property<std::string> routing_policy{
      *this,
      "routing.policy",
      "prefix",
      Reload::kLive,
      "How a worker is chosen. `POST /hidane/policy` switches it without a restart.",
      {"prefix", "round_robin", "random", "least_tokens", "power_of_two", "session", "fixed_hash",
       "tree", "cost"}};
  Property<double> routing_fill{*this,
                                "routing.fill",
                                0.9,
                                0.05,
                                1.0,
                                Reload::kRestart,
                                "Share of a worker's KV memory that may be assigned."};
  Property<double> routing_running_reserve{
      *this,
      "routing.running_reserve",
      0.07,
      0.0,
      0.9,
      Reload::kRestart,
      "Share of a worker's KV memory kept free for running requests until their "
      "real need is measured."};
  Property<int64_t> routing_first_sight_choices{
      *this,
      "routing.first_sight_choices",
      0,
      0,
      65'536,
      Reload::kRestart,
      "Candidates compared for a new prefix. 0: all that have room."};
  Property<bool> routing_keep_warm{
      *this, "routing.keep_warm", false, Reload::kRestart,
      "Static prefixes are sent again, with one token of answer, before engines evict them."};
  Property<bool> routing_silent_peers{
      *this, "routing.silent_peers", false, Reload::kRestart,
      "Other gateways steer the same engines and nobody tells the others: homes then follow hashes "
      "and memory only."};
  Property<double> routing_headroom{*this,
                                    "routing.headroom",
                                    1.25,
                                    1.0,
                                    10.0,
                                    Reload::kRestart,
                                    "Homes of a prefix per share of load."};
  Property<double> routing_spare_headroom{
      *this,
      "routing.spare_headroom",
      4.0,
      1.0,
      100.0,
      Reload::kRestart,
      "Homes of a prefix per share of load while memory is to spare (spare_mark)."};
  Property<double> routing_spare_mark{
      *this,
      "routing.spare_mark",
      0.7,
      0.0,
      1.0,
      Reload::kRestart,
      "Assigned share of memory up to which spare homes are given."};
  Property<double> routing_share_halflife_s{
      *this,
      "routing.share_halflife_s",
      120.0,
      1.0,
      86'400.0,
      Reload::kRestart,
      "Half-life of a prefix's share of load. Unit: seconds."};
  Property<double> routing_share_requests_min{*this,
                                              "routing.share_requests_min",
                                              1500.0,
                                              1.0,
                                              1e9,
                                              Reload::kRestart,
                                              "A half-life lasts at least so many requests."};
  Property<double> routing_grow_after_s{
      *this,
      "routing.grow_after_s",
      20.0,
      0.0,
      86'400.0,
      Reload::kRestart,
      "A prefix gains a home only after wanting one this long. Unit: seconds."};
  Property<double> routing_idle_release_s{
      *this,
      "routing.idle_release_s",
      600.0,
      1.0,
      86'400.0,
      Reload::kRestart,
      "A prefix unused so long makes way where none fits. Unit: seconds."};
  Property<double> routing_short_k1_ms{
      *this,
      "routing.short_k1_ms",
      50.0,
      0.0,
      60'000.0,
      Reload::kRestart,
      "A prefix cheaper than this to recompute is at home everywhere. Unit: ms."};
  Property<double> routing_near_tie_ms{
      *this,
      "routing.near_tie_ms",
      5.0,
      0.0,
      60'000.0,
      Reload::kRestart,
      "Predicted first-token times closer than this are equal. Unit: ms."};
  Property<double> routing_near_tie_share{*this,
                                          "routing.near_tie_share",
                                          0.1,
                                          0.0,
                                          1.0,
                                          Reload::kRestart,
                                          "Share of the predicted prefill added to near_tie_ms."};
  Property<int64_t> routing_compare_max{*this,
                                        "routing.compare_max",
                                        16,
                                        1,
                                        65'536,
                                        Reload::kRestart,
                                        "Workers compared where every worker is a home."};
  Property<double> routing_prefill_tokens_per_s{*this,
                                                "routing.prefill_tokens_per_s",
                                                10'000.0,
                                                1.0,
                                                1e9,
                                                Reload::kRestart,
                                                "Prefill rate of a worker until it is learned."};
  Property<int64_t> routing_kv_capacity_tokens{
      *this,
      "routing.kv_capacity_tokens",
      400'000,
      1,
      1'000'000'000,
      Reload::kRestart,
      "KV memory of a worker that neither says it nor is configured. Unit: tokens."};
  Property<int64_t> routing_single_flight_tokens_min{
      *this,
      "routing.single_flight_tokens_min",
      2'048,
      0,
      100'000'000,
      Reload::kRestart,
      "Followers of a cold prefix wait for its first token when it is longer than this. "
      "Unit: tokens."};
  Property<double> routing_single_flight_slack{
      *this,
      "routing.single_flight_slack",
      2.0,
      0.1,
      100.0,
      Reload::kRestart,
      "Followers wait at most so many times the predicted first-token time."};
  Property<int64_t> routing_prefixes_max{*this,
                                         "routing.prefixes_max",
                                         65'536,
                                         16,
                                         10'000'000,
                                         Reload::kRestart,
                                         "Prefixes remembered; the least recently used leaves."};
  Property<int64_t> routing_conversations_max{
      *this,
      "routing.conversations_max",
      262'144,
      16,
      10'000'000,
      Reload::kRestart,
      "Conversations remembered; the least recently used leaves."};

  Property<std::string> prompt_part_order{*this,
                                          "prompt.part_order",
                                          "tools_first",
                                          Reload::kRestart,
                                          "Which part the engine's chat template renders first.",
                                          {"tools_first", "system_first"}};

  Property<int64_t> health_interval_ms{
      *this,
      "health.interval_ms",
      1'000,
      10,
      3'600'000,
      Reload::kRestart,
      "Time between two probes of an engine's `/health`. Unit: ms."};
  Property<int64_t> health_timeout_ms{*this,
                                      "health.timeout_ms",
                                      1'000,
                                      1,
                                      60'000,
                                      Reload::kRestart,
                                      "Longest answer of one probe. Unit: ms."};
  Property<int64_t> health_metrics_interval_ms{
      *this,
      "health.metrics_interval_ms",
      5'000,
      10,
      3'600'000,
      Reload::kRestart,
      "Time between two reads of an engine's `/metrics` and `/v1/models`. Unit: ms."};
  Property<int64_t> health_probes_down{*this,
                                       "health.probes_down",
                                       2,
                                       1,
                                       1'000,
                                       Reload::kRestart,
                                       "Failed probes in a row after which a worker is down."};
  Property<int64_t> health_resets_out{
      *this,
      "health.resets_out",
      2,
      1,
      1'000,
      Reload::kRestart,
      "Broken connections over distinct requests, without a success between, that eject a "
      "worker."};
  Property<int64_t> health_errors_out{
      *this,
      "health.errors_out",
      3,
      1,
      1'000,
      Reload::kRestart,
      "5xx answers over distinct requests, without a success between, that eject a worker."};
  Property<int64_t> health_eject_ms{
      *this,
      "health.eject_ms",
      5'000,
      1,
      3'600'000,
      Reload::kRestart,
      "First ejection; doubles while the worker keeps failing. Unit: ms."};
  Property<double> health_eject_max_percent{
      *this,
      "health.eject_max_percent",
      50.0,
      0.0,
      100.0,
      Reload::kRestart,
      "At most this share of workers is ejected for failing requests."};

  Property<bool> log_requests{*this, "log.requests", true, Reload::kRestart,
                              "One JSON line per request on stderr; never prompt text."};

  std::vector<std::unique_ptr<UpstreamConfig>> upstreams;
};

/// What LoadConfig reads. The room reads neither the environment nor the command line itself.
struct ConfigSources {
  std::string file_name;                                         ///< for messages
  std::optional<std::string> file_text;                          ///< hidane.toml; nullopt: no file
  std::vector<std::pair<std::string, std::string>> environment;  ///< all of it: name, value
  std::vector<std::string> sets;       ///< `path.to.key=value`, from `--set`
  std::vector<std::string> upstreams;  ///< URLs, from `--upstream`; they replace the file's
};

/// Defaults, then the file, then `HIDANE_PATH__TO__KEY`, then `--set`, validated as a whole.
/// Errors name the key, the value and (for the file) line and column; an unknown key is an error
/// that names the nearest known one. Reads `api_key_file`s. Takes milliseconds.
Result<std::unique_ptr<Config>> LoadConfig(const ConfigSources& sources);

/// The effective configuration as TOML, each value with its origin. Keys of engines are not in it.
std::string PrintConfig(const Config& config);

/// The same as a JSON object {"path.to.key": {"value", "origin"}, ..., "upstreams": [...]};
/// URLs and keys of engines are not in it.
std::string ConfigJson(const Config& config);

/// The text of docs/config.md.
std::string ConfigDoc();

}  // namespace hidane::gateway
