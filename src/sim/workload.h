#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/request.h"

namespace hidane::sim {

/// How a request ended for the client.
struct Finished {
  const Request& request;  ///< as it was sent
  bool ok = true;          ///< false: refused, lost with its worker, or given up by the client
  Duration retry_after{};  ///< > 0: refused with this promise
};

/// Who sends what when. Sources are deterministic: all chance comes from the seed that they were
/// made with. A workload is asked in virtual time:
///
///   Next()      what is sent whatever happens (open loop, the first of a closed loop), by arrival
///   After(done) what an answer leads to: the next turn after its think time, or the next request
///               of a closed loop
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string_view name() const = 0;
  /// In order of `arrival`; nullopt: no more.
  virtual std::optional<Request> Next() = 0;
  /// `arrival` of what it returns is >= now.
  virtual std::optional<Request> After(const Finished& done, TimePoint now) = 0;
};

}  // namespace hidane::sim
