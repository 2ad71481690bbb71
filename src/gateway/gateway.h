#pragma once
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "gateway/config.h"

namespace hidane::gateway {

/// A running gateway: its event loops, listeners and health probes, on threads of its own.
///
///     auto config = LoadConfig(sources);            // names what is wrong
///     auto gateway = Gateway::Start(std::move(*config));
///     ... wait for SIGTERM ...
///     (*gateway)->Drain();                          // a second SIGTERM: Stop()
///     (*gateway)->Join();
///
/// Several may run in one process. Drain and Stop may be called from any thread; Join from one.
class Gateway {
 public:
  /// Binds both listeners and starts serving. kInvalidArgument for an address that can't be
  /// parsed, kUnavailable for one in use; the message names it. Engines need not be up.
  static Result<std::unique_ptr<Gateway>> Start(std::unique_ptr<Config> config);
  ~Gateway();  ///< Stop and Join
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  uint16_t data_port() const;   ///< the bound one, when the configured one was 0
  uint16_t admin_port() const;  ///< 0 without an admin listener

  /// Begins the end and returns at once: `/ready` says 503, answers carry `Connection: close`,
  /// what runs goes on to its end, for at most `server.drain_ms`; the listeners close last.
  void Drain();
  /// Cuts everything off.
  void Stop();
  /// Returns when Drain is through, or after Stop.
  void Join();

 private:
  struct Impl;
  explicit Gateway(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane::gateway
