#pragma once
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Metrics: cells that cost a relaxed add on the path, and a registry that prints them in the
/// Prometheus text format 0.0.4 at scrape time.
namespace hidane::obs {

/// A monotonic count. Any thread may add; cheapest when one thread owns it.
class Counter {
 public:
  void Add(uint64_t n = 1) { v_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> v_{0};
};

/// A monotonic sum of seconds (or another real unit).
class RealCounter {
 public:
  void Add(double x) {
    double old = v_.load(std::memory_order_relaxed);
    while (!v_.compare_exchange_weak(old, old + x, std::memory_order_relaxed)) {
    }
  }
  double value() const { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> v_{0};
};

class Gauge {
 public:
  void Set(double x) { v_.store(x, std::memory_order_relaxed); }
  double value() const { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> v_{0};
};

/// Cumulative histogram with fixed upper bounds (ascending; +Inf is implied).
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);
  void Observe(double x);
  std::span<const double> bounds() const { return bounds_; }
  uint64_t bucket(size_t i) const { return cells_[i].value(); }  ///< not cumulative; last is +Inf
  double sum() const { return sum_.value(); }
  uint64_t count() const;

 private:
  std::vector<double> bounds_;
  std::vector<Counter> cells_;
  RealCounter sum_;
};

/// 1 ms .. 100 s, about three a decade: for TTFT and waits, in seconds.
std::span<const double> LatencyBounds();
/// 1 .. 10^6 tokens.
std::span<const double> TokenBounds();

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Owns every metric of a process and prints them. Creation at start, not on the hot path: it
/// takes a lock; the returned references live as long as the registry. Asking again for the same
/// name and labels gives the same cell. Label sets are closed: the caller bounds them.
class Registry {
 public:
  Registry();
  ~Registry();
  Counter& counter(std::string_view name, std::string_view help, Labels labels = {});
  RealCounter& real_counter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge& gauge(std::string_view name, std::string_view help, Labels labels = {});
  Histogram& histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                       Labels labels = {});
  /// Called at the start of each scrape, to set gauges from state that lives elsewhere.
  void OnScrape(std::function<void()> fn);
  /// The exposition text. Thread-safe.
  std::string Scrape();
  struct Described {
    std::string name, type, help;
  };
  std::vector<Described> Describe() const;  ///< for the generated docs/metrics.md

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane::obs
