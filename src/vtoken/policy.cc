#include "vtoken/policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "vtoken/policy_h2o.h"
#include "vtoken/policy_keydiff.h"
#include "vtoken/policy_random.h"
#include "vtoken/policy_rkv.h"
#include "vtoken/policy_scissorhands.h"
#include "vtoken/policy_snapkv.h"
#include "vtoken/policy_streaming_llm.h"
#include "vtoken/policy_tova.h"

namespace hidane::vtoken {
namespace {

template <class P>
std::unique_ptr<Policy> Make() {
  return std::make_unique<P>();
}

constexpr std::array<std::string_view, 8> kNames{
    "random", "streaming-llm", "h2o", "scissorhands", "snapkv", "tova", "keydiff", "r-kv"};
constexpr std::array<std::unique_ptr<Policy> (*)(), 8> kMakers{
    Make<RandomPolicy>, Make<StreamingLlmPolicy>, Make<H2oPolicy>,     Make<ScissorhandsPolicy>,
    Make<SnapKvPolicy>, Make<TovaPolicy>,         Make<KeyDiffPolicy>, Make<RKvPolicy>};

}  // namespace

Status CheckTraits(const Policy& policy) {
  const PolicyTraits t = policy.traits();
  const auto wrong = [&](std::string_view what) {
    return Fail(Code::kInvalidArgument, fmt::format("kv policy {}: {}", policy.name(), what));
  };
  if (t.signals.keys() && t.scope != Scope::kKvHead)
    return wrong("signals: keys need scope kKvHead");
  if (t.signals.Has(Signal::kWindowSum) && t.window_rows == 0)
    return wrong("window_rows: 0, but kWindowSum is declared");
  if (t.origin == Origin::kWindow && t.window_rows == 0)
    return wrong("window_rows: 0, but the origin is a window");
  if (!(t.low_factor > 0)) return wrong(fmt::format("low_factor: {} isn't > 0", t.low_factor));
  if (!(t.recent_share >= 0 && t.recent_share < 1))
    return wrong(fmt::format("recent_share: {} isn't in [0, 1)", t.recent_share));
  return {};
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return kMakers[i]();
  return Fail(Code::kInvalidArgument,
              fmt::format("no kv policy '{}': there are {}", name, fmt::join(kNames, ", ")));
}

std::span<const std::string_view> PolicyNames() {
  return kNames;
}

}  // namespace hidane::vtoken
