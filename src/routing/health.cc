#include "routing/health.h"

#include <algorithm>

namespace hidane::routing {

std::string_view Name(HealthState state) {
  switch (state) {
    case HealthState::kUp:
      return "up";
    case HealthState::kEjected:
      return "ejected";
    case HealthState::kHalfOpen:
      return "half_open";
    case HealthState::kDown:
      return "down";
  }
  return "";
}

HealthState Health::state(TimePoint now) const {
  if (probes_failed_ >= params_.probes_down) return HealthState::kDown;
  if (!out_) return HealthState::kUp;
  return now < out_until_ ? HealthState::kEjected : HealthState::kHalfOpen;
}

bool Health::MayTake(TimePoint now) const {
  const HealthState s = state(now);
  return s == HealthState::kUp || (s == HealthState::kHalfOpen && !trial_used_);
}

void Health::OnProbe(bool ok, TimePoint now) {
  if (!ok) {
    probes_failed_ = std::min(probes_failed_ + 1, params_.probes_down);
    return;
  }
  const bool was_down = state(now) == HealthState::kDown;
  probes_failed_ = 0;
  // Politeness is no proof: after a down or a refused connection a real request decides, and
  // other ejections run their time.
  if (was_down || (out_ && cause_ == Fault::kConnect && now < out_until_)) {
    out_ = true;
    out_until_ = now;
    trial_used_ = false;
  }
}

void Health::OnSuccess(TimePoint now) {
  faults_.clear();
  if (state(now) != HealthState::kHalfOpen) return;
  out_ = false;
  trial_used_ = false;
  eject_s_ = 0;
}

void Health::OnDispatch(TimePoint now) {
  if (state(now) == HealthState::kHalfOpen) trial_used_ = true;
}

void Health::OnAbandoned() {
  trial_used_ = false;
}

bool Health::OnFault(Fault fault, uint64_t fingerprint, bool may_eject, TimePoint now) {
  const HealthState s = state(now);
  if (s == HealthState::kEjected || s == HealthState::kDown) return false;  // known already
  if (s == HealthState::kHalfOpen || fault == Fault::kConnect) {
    Eject(fault, now);
    return true;
  }
  std::erase_if(faults_, [&](const Mark& m) {
    return Seconds(now - m.at) > params_.window_s ||
           (m.fault == fault && m.fingerprint == fingerprint);
  });
  const uint32_t threshold = fault == Fault::k5xx     ? params_.errors_out
                             : fault == Fault::kReset ? params_.resets_out
                                                      : 1;
  if (faults_.size() < params_.errors_out + params_.resets_out) {
    faults_.push_back({fault, fingerprint, now});
  }
  const auto alike = std::ranges::count(faults_, fault, &Mark::fault);
  if (alike < static_cast<ptrdiff_t>(threshold) || !may_eject) return false;
  Eject(fault, now);
  return true;
}

void Health::Eject(Fault cause, TimePoint now) {
  eject_s_ = eject_s_ == 0 ? params_.eject_s : std::min(2 * eject_s_, params_.eject_s_max);
  out_until_ = now + FromSeconds(eject_s_);
  out_ = true;
  trial_used_ = false;
  cause_ = cause;
  faults_.clear();
}

bool MayEject(const HealthParams& params, size_t workers, size_t out) {
  return static_cast<double>(out + 1) * 100 <=
         static_cast<double>(workers) * params.eject_max_percent;
}

}  // namespace hidane::routing
