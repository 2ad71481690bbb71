#pragma once
#include <string_view>

#include "gateway/context.h"
#include "net/server.h"
#include "prompt/body_reader.h"

namespace hidane::gateway {

/// The admin listener's routes: what operators read and switch. Never on the data listener. Loop
/// thread only.
class Admin {
 public:
  explicit Admin(Context& context);
  net::Task<> Handle(net::Exchange& exchange);

 private:
  net::Task<> Answer(net::Exchange& exchange, Result<std::string> json);
  net::Task<> SendMetrics(net::Exchange& exchange);
  Result<std::string> SetPolicy(std::string_view body);
  std::string Policy();

  Context& context_;
  prompt::BodyReader reader_;
};

/// Gauges of the fleet, set at each scrape.
void AddFleetMetrics(Context& context);

}  // namespace hidane::gateway
