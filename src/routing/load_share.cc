#include "routing/load_share.h"

#include <algorithm>
#include <cmath>

namespace hidane::routing {

double LoadShare::Value(const Count& count) const {
  return Faded(count.value, count.age, time_.age());
}

void LoadShare::Add(Count& count, TimePoint now) {
  time_.OnRequest(now, requests_min_);
  for (Count* c : {&count, &total_}) *c = {Value(*c) + 1, time_.age()};
}

double LoadShare::Share(const Count& count) const {
  const double total = Value(total_);
  return total > 0 ? Value(count) / total : 0;
}

double LoadShare::LowerShare(const Count& count) const {
  const double total = Value(total_);
  if (total <= 0) return 0;
  const double share = Value(count) / total;
  return std::max(0.0, share - 2 * std::sqrt(share * (1 - share) / total));
}

}  // namespace hidane::routing
