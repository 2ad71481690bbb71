#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace hidane::routing {

enum class HealthState : uint8_t {
  kUp,
  kEjected,   ///< takes nothing until its time is over
  kHalfOpen,  ///< one real request is let through; its end decides
  kDown,      ///< the active probe fails
};
std::string_view Name(HealthState state);

/// How an exchange with a worker went wrong. 4xx and 429 are answers, not faults.
enum class Fault : uint8_t {
  kConnect,  ///< refused, unreachable, or no handshake in time
  kReset,    ///< EOF or reset before the answer was complete
  k5xx,      ///< any 5xx answer
  kSilence,  ///< no byte far past the prediction
};

struct HealthParams {
  uint32_t probes_down = 2;  ///< failed probes in a row that mean down
  uint32_t resets_out = 2;   ///< over distinct fingerprints, without a success between
  uint32_t errors_out = 3;   ///< 5xx over distinct fingerprints, without a success between
  double window_s = 10;      ///< faults older than this are forgotten
  double eject_s = 5;        ///< first ejection; doubles with each
  double eject_s_max = 300;
  double silence_s = 30;          ///< no byte for so long, and for three predictions, is a fault
  double eject_max_percent = 50;  ///< of the fleet, by 5xx, resets and silence

  friend bool operator==(const HealthParams&, const HealthParams&) = default;
};

/// Health of one worker: a pure state machine over probes and what requests met.
///
///     Up --faults--> Ejected --time--> HalfOpen --one real request--> Up | Ejected (longer)
///      `--probes fail--> Down --probe ok--> HalfOpen
///
/// A connect error ejects at once. 5xx and resets count over distinct request fingerprints, so
/// that one poison prompt is not a sick worker. Not thread-safe.
class Health {
 public:
  explicit Health(const HealthParams& params = {}) : params_(params) {}

  /// `ok`: the probe got a 2xx answer in time.
  void OnProbe(bool ok, TimePoint now);
  /// A complete answer below 500, or the first bytes of one.
  void OnSuccess(TimePoint now);
  /// `may_eject` is false while the fleet has no ejection left to give (MayEject); connect
  /// errors don't ask. Returns whether this fault took the worker out.
  bool OnFault(Fault fault, uint64_t fingerprint, bool may_eject, TimePoint now);
  /// A request goes to this worker: uses the trial of a half-open one.
  void OnDispatch(TimePoint now);
  /// A dispatched request ended without proof either way (the client left): gives it back.
  void OnAbandoned();

  HealthState state(TimePoint now) const;
  /// Up, or half-open with its trial unused.
  bool MayTake(TimePoint now) const;

 private:
  void Eject(Fault cause, TimePoint now);

  struct Mark {
    Fault fault;
    uint64_t fingerprint;
    TimePoint at;
  };
  HealthParams params_;
  std::vector<Mark> faults_;  // distinct and recent: bounded by the thresholds
  TimePoint out_until_{};
  double eject_s_ = 0;  // length of the last ejection; 0: none since the last success
  uint32_t probes_failed_ = 0;
  Fault cause_{};
  bool out_ = false;
  bool trial_used_ = false;
};

/// Whether one more of `workers` may be out beside the `out` ones.
bool MayEject(const HealthParams& params, size_t workers, size_t out);

}  // namespace hidane::routing
