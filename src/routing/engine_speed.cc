#include "routing/engine_speed.h"

namespace hidane::routing {
namespace {

// In thousands of tokens, so that terms are of like size.
constexpr double kThousand = 1e-3;

// Where to start: a modern GPU with a model of 8 G parameters; both are soon learned.
constexpr Regression<3>::Vector kPrefillDeviation{0.02, 0.1, 0.002};
constexpr Regression<2>::Vector kStep{0.01, 0.00005};
constexpr Regression<2>::Vector kStepDeviation{0.02, 0.0001};

}  // namespace

EngineSpeed::EngineSpeed(double prefill_tokens_per_s)
    : prefill_({0, 1 / (kThousand * prefill_tokens_per_s), 0}, kPrefillDeviation),
      step_(kStep, kStepDeviation) {}

EngineSpeed::EngineSpeed(const EngineSpeed* prior)
    : prior_(prior), prefill_(prior->prefill_), step_(prior->step_) {}

Regression<3>::Vector EngineSpeed::PrefillTerms(uint32_t new_tokens, uint32_t cached_tokens) {
  const double n = kThousand * new_tokens;
  const double p = kThousand * cached_tokens;
  return {1, n, n * (p + n / 2)};
}

Regression<2>::Vector EngineSpeed::StepTerms(uint64_t context_tokens) {
  return {1, kThousand * static_cast<double>(context_tokens)};
}

double EngineSpeed::PrefillSeconds(uint32_t new_tokens, uint32_t cached_tokens) const {
  if (prior_ != nullptr && prefills_ < kSamplesMin) {
    return prior_->PrefillSeconds(new_tokens, cached_tokens);
  }
  return prefill_.Predict(PrefillTerms(new_tokens, cached_tokens));
}

double EngineSpeed::StepSeconds(uint64_t context_tokens) const {
  if (prior_ != nullptr && steps_ < kSamplesMin) return prior_->StepSeconds(context_tokens);
  return step_.Predict(StepTerms(context_tokens));
}

double EngineSpeed::tokens_per_s() const {
  return kTypicalTokens / PrefillSeconds(kTypicalTokens, 0);
}

void EngineSpeed::ObservePrefill(uint32_t new_tokens, uint32_t cached_tokens, double seconds) {
  if (seconds <= 0) return;
  if (prefills_ == 0 && prior_ != nullptr) prefill_ = prior_->prefill_;
  prefills_ += prefills_ < kSamplesMin;
  prefill_.Observe(PrefillTerms(new_tokens, cached_tokens), seconds);
}

void EngineSpeed::ObserveStep(uint64_t context_tokens, double seconds) {
  if (seconds <= 0) return;
  if (steps_ == 0 && prior_ != nullptr) step_ = prior_->step_;
  steps_ += steps_ < kSamplesMin;
  step_.Observe(StepTerms(context_tokens), seconds);
}

}  // namespace hidane::routing
