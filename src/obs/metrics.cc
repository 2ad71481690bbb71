#include "obs/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <variant>

namespace hidane::obs {

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), cells_(bounds.size() + 1) {}

void Histogram::Observe(double x) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), x);
  cells_[static_cast<size_t>(at - bounds_.begin())].Add();
  sum_.Add(x);
}

uint64_t Histogram::count() const {
  uint64_t n = 0;
  for (const Counter& c : cells_) n += c.value();
  return n;
}

std::span<const double> LatencyBounds() {
  static constexpr double kBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                       0.5,   1,      2.5,   5,    10,    25,   50,  100};
  return kBounds;
}

std::span<const double> TokenBounds() {
  static constexpr double kBounds[] = {1,    4,     16,    64,     256,    1024,
                                       4096, 16384, 65536, 262144, 1048576};
  return kBounds;
}

namespace {

using Cell = std::variant<std::unique_ptr<Counter>, std::unique_ptr<RealCounter>,
                          std::unique_ptr<Gauge>, std::unique_ptr<Histogram>>;
struct Series {
  Labels labels;
  Cell cell;
};
struct Family {
  std::string name, help, type;
  std::deque<Series> series;
};

std::string LabelText(const Labels& labels, std::string_view le = {}) {
  if (labels.empty() && le.empty()) return {};
  std::string out = "{";
  const auto add = [&](std::string_view name, std::string_view value) {
    if (out.size() > 1) out += ',';
    out += fmt::format("{}=\"", name);
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
  };
  for (const auto& [name, value] : labels) add(name, value);
  if (!le.empty()) add("le", le);
  return out + "}";
}

struct Printer {
  std::string& out;
  const std::string& name;
  const Labels& labels;
  void operator()(const std::unique_ptr<Counter>& c) const {
    out += fmt::format("{}{} {}\n", name, LabelText(labels), c->value());
  }
  void operator()(const std::unique_ptr<RealCounter>& c) const {
    out += fmt::format("{}{} {}\n", name, LabelText(labels), c->value());
  }
  void operator()(const std::unique_ptr<Gauge>& g) const {
    out += fmt::format("{}{} {}\n", name, LabelText(labels), g->value());
  }
  void operator()(const std::unique_ptr<Histogram>& h) const {
    uint64_t cumulative = 0;
    for (size_t i = 0; i <= h->bounds().size(); ++i) {
      cumulative += h->bucket(i);
      const std::string le = i < h->bounds().size() ? fmt::format("{}", h->bounds()[i]) : "+Inf";
      out += fmt::format("{}_bucket{} {}\n", name, LabelText(labels, le), cumulative);
    }
    out += fmt::format("{}_sum{} {}\n", name, LabelText(labels), h->sum());
    out += fmt::format("{}_count{} {}\n", name, LabelText(labels), cumulative);
  }
};

}  // namespace

struct Registry::Impl {
  mutable std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;
  std::vector<std::function<void()>> on_scrape;

  template <class T, class... Args>
  T& Get(std::string_view name, std::string_view help, std::string_view type, Labels labels,
         Args&&... args) {
    const std::lock_guard lock(mutex);
    auto it = families.find(name);
    if (it == families.end()) {
      it = families
               .emplace(name, Family{std::string(name), std::string(help), std::string(type), {}})
               .first;
    }
    for (Series& s : it->second.series) {
      if (s.labels == labels) return *std::get<std::unique_ptr<T>>(s.cell);
    }
    auto cell = std::make_unique<T>(std::forward<Args>(args)...);
    T& ref = *cell;
    it->second.series.push_back({std::move(labels), std::move(cell)});
    return ref;
  }
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(std::string_view name, std::string_view help, Labels labels) {
  return impl_->Get<Counter>(name, help, "counter", std::move(labels));
}
RealCounter& Registry::real_counter(std::string_view name, std::string_view help, Labels labels) {
  return impl_->Get<RealCounter>(name, help, "counter", std::move(labels));
}
Gauge& Registry::gauge(std::string_view name, std::string_view help, Labels labels) {
  return impl_->Get<Gauge>(name, help, "gauge", std::move(labels));
}
Histogram& Registry::histogram(std::string_view name, std::string_view help,
                               std::span<const double> bounds, Labels labels) {
  return impl_->Get<Histogram>(name, help, "histogram", std::move(labels), bounds);
}

void Registry::OnScrape(std::function<void()> fn) {
  const std::lock_guard lock(impl_->mutex);
  impl_->on_scrape.push_back(std::move(fn));
}

std::string Registry::Scrape() {
  std::vector<std::function<void()>> hooks;
  {
    const std::lock_guard lock(impl_->mutex);
    hooks = impl_->on_scrape;
  }
  for (const auto& hook : hooks) hook();
  const std::lock_guard lock(impl_->mutex);
  std::string out;
  for (const auto& [name, family] : impl_->families) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family.help, name, family.type);
    for (const Series& s : family.series) std::visit(Printer{out, name, s.labels}, s.cell);
  }
  return out;
}

std::vector<Registry::Described> Registry::Describe() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Described> all;
  for (const auto& [name, f] : impl_->families) all.push_back({f.name, f.type, f.help});
  return all;
}

}  // namespace hidane::obs
