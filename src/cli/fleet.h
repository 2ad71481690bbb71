#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/child.h"
#include "cli/terminal.h"

namespace hidane::cli {

struct FleetOptions {
  uint32_t engines = 4;
  uint16_t port = 8080;    ///< the gateway's, on loopback; 0 = any
  std::string model;       ///< GGUF file
  uint32_t kv_tokens = 0;  ///< of each engine
  uint32_t threads = 0;    ///< of each engine; 0 = cores / engines, at least 1
};

/// Gateway and engines of `hidane up`: processes of this machine, none of which outlives us.
///
///   hidane up ──> gateway :8080 ──> engine 0 .. n-1 on free ports
///
/// Logs lie in ~/.cache/hidane/logs. Main thread only.
class Fleet {
 public:
  /// Starts all and waits until they serve, with progress on `line`. Errors name the process and
  /// quote its last word; kCancelled on Ctrl-C.
  static Result<Fleet> Start(const FleetOptions& options, ProgressLine& line);
  Fleet(Fleet&&) = default;
  Fleet& operator=(Fleet&&) = delete;
  ~Fleet();  ///< stops the gateway, then the engines

  const std::string& gateway_url() const { return gateway_url_; }
  const std::string& admin_url() const { return admin_url_; }
  const std::vector<std::string>& engine_urls() const { return engine_urls_; }
  /// What has ended since the last call, each as a line to show.
  std::vector<std::string> TakeEnded();

 private:
  Fleet() = default;
  Status StartEngines(const FleetOptions& options, const std::string& logs, ProgressLine& line);
  Status StartGateway(const FleetOptions& options, const std::string& logs, ProgressLine& line);

  std::vector<Child> children_;  // engines, then the gateway
  std::vector<std::string> engine_urls_;
  std::string gateway_url_, admin_url_;
};

}  // namespace hidane::cli
