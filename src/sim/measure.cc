#include "sim/measure.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>

#include "base/rng.h"
#include "sim/percentile.h"

namespace hidane::sim {
namespace {

// The service level of goodput: docs/simulator.md.
constexpr Duration kTtftMax = std::chrono::seconds(1);
constexpr double kTpotMaxSeconds = 0.050;

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : kUnknown;
}

}  // namespace

void Measure::OnSend(const Request& request, const Cluster& cluster, TimePoint now) {
  if (request.counted) {
    if (!first_counted_) {
      first_counted_ = now;
      for (uint32_t w = 0; w < cluster.size(); ++w) before_.push_back(cluster.engine(w).time());
    }
    last_counted_ = now;
  }
  open_.emplace(request.id, static_cast<uint32_t>(records_.size()));
  records_.push_back({.arrival = request.arrival,
                      .before = request.waited,
                      .k1 = request.prompt.k1(),
                      .prompt_tokens = request.prompt.tokens,
                      .output_tokens = request.output_tokens,
                      .counted = request.counted});
}

void Measure::OnEnter(const Request& request, Duration wait) {
  Record& r = records_[open_.at(request.id)];
  r.in_line = wait;
  r.known_tokens = bounds_.Add(request);
}

void Measure::OnFirstByte(uint64_t id, TimePoint now) {
  records_[open_.at(id)].first = now;
}

void Measure::OnEnd(const Ending& ending, TimePoint now) {
  const auto at = open_.find(ending.id);
  Record& r = records_[at->second];
  open_.erase(at);
  r.end = now;
  r.ok = ending.ok;
  r.ended = true;
  r.worker = ending.worker.value();
  r.cached_tokens = ending.cached_tokens;
  r.expected_cached = ending.expected_cached;
  ++ended_;
}

void Measure::FillRow(const Cluster& cluster, Row& row) const {
  double prompt = 0, cached = 0, believed = 0;
  row.requests = row.errors = 0;
  for (const Record& r : records_) {
    if (!r.counted || !r.ended) continue;
    ++row.requests;
    row.errors += !r.ok;
    if (!r.ok) continue;
    prompt += r.prompt_tokens;
    cached += r.cached_tokens;
    believed += r.expected_cached;
  }
  row.hit_ratio = Ratio(cached, prompt);
  row.hit_ratio_believed = Ratio(believed, prompt);
  row.hit_ratio_bound = bounds_.Within(cluster.kv_capacity_tokens());
  FillTimes(row);
  FillRates(row);
  FillEngineTimes(cluster, row);
  FillHomes(row);
}

void Measure::FillTimes(Row& row) const {
  std::vector<double> ttft, ttft_with_wait, wait, tpot;
  for (const Record& r : records_) {
    if (!r.counted || !r.ok) continue;
    ttft.push_back(Seconds(r.ttft()));
    ttft_with_wait.push_back(Seconds(r.ttft_with_wait()));
    wait.push_back(Seconds(r.in_line));
    if (r.output_tokens > 1) tpot.push_back(r.tpot_s());
  }
  row.ttft_p50_s = Percentile(ttft, 0.50);
  row.ttft_p99_s = Percentile(ttft, 0.99);
  row.ttft_with_wait_p99_s = Percentile(ttft_with_wait, 0.99);
  row.tpot_p50_s = Percentile(tpot, 0.50);
  row.admission_wait_mean_s = Mean(wait);
  row.admission_wait_p99_s = Percentile(wait, 0.99);
}

// While clients keep sending, what finishes is the rate that the fleet sustains; a burst is over
// when its last answer is.
void Measure::FillRates(Row& row) const {
  if (!first_counted_) return;
  const bool burst = *last_counted_ == *first_counted_;
  TimePoint until = *last_counted_;
  double good = 0, counted = 0;
  for (const Record& r : records_) {
    if (!r.counted || !r.ended) continue;
    ++counted;
    if (burst) until = std::max(until, r.end);
    good += r.ok && r.ttft() <= kTtftMax && (r.output_tokens < 2 || r.tpot_s() <= kTpotMaxSeconds);
  }
  double finished = 0;
  for (const Record& r : records_) {
    finished += r.ok && r.end > *first_counted_ && r.end <= until;
  }
  row.requests_per_s = Ratio(finished, Seconds(until - *first_counted_));
  row.goodput_rps = row.requests_per_s * Ratio(good, counted);
}

// Imbalance: the largest worker's prefill work over the mean.
void Measure::FillEngineTimes(const Cluster& cluster, Row& row) const {
  double busy = 0, first_sight_too = 0, again = 0;
  std::vector<double> prefill;
  for (uint32_t w = 0; w < before_.size(); ++w) {
    const EngineTime& now = cluster.engine(w).time();
    busy += now.busy - before_[w].busy;
    first_sight_too += now.static_prefill - before_[w].static_prefill;
    again += now.static_recompute - before_[w].static_recompute;
    prefill.push_back(now.prefill - before_[w].prefill);
  }
  row.static_prefill_share = Ratio(first_sight_too, busy);
  row.recompute_share = Ratio(again, busy);
  if (prefill.empty()) return;
  row.load_imbalance = Ratio(*std::ranges::max_element(prefill), Mean(prefill));
  row.load_imbalance_bound = std::max(1.0, Ratio(LongestPrefill(cluster), Mean(prefill)));
}

// Seconds of the longest prefill that no cache would have spared, on the fastest worker.
double Measure::LongestPrefill(const Cluster& cluster) const {
  const Record* longest = nullptr;
  const auto seconds = [&](uint32_t worker, const Record& r) {
    return cluster.engine(worker).PrefillSeconds(r.known_tokens, r.prompt_tokens);
  };
  for (const Record& r : records_) {
    if (!r.counted || !r.ok) continue;
    if (longest == nullptr || seconds(0, r) > seconds(0, *longest)) longest = &r;
  }
  if (longest == nullptr) return 0;
  double least = seconds(0, *longest);
  for (uint32_t w = 1; w < cluster.size(); ++w) least = std::min(least, seconds(w, *longest));
  return least;
}

// Workers that served a prefix, whatever the policy calls them.
void Measure::FillHomes(Row& row) const {
  boost::unordered_flat_set<uint64_t> prefixes, homes;
  for (const Record& r : records_) {
    if (!r.counted || !r.ok) continue;
    prefixes.insert(r.k1);
    homes.insert(Mix64(r.k1 ^ Mix64(r.worker)));
  }
  row.mean_homes = Ratio(static_cast<double>(homes.size()), static_cast<double>(prefixes.size()));
}

Series Measure::MakeSeries(Duration step, std::vector<Series::Point> samples) const {
  Series series{.step = step, .points = std::move(samples)};
  for (const Record& r : records_) {
    if (!r.ended) continue;
    const auto at = static_cast<size_t>(r.end / step);
    if (at >= series.points.size()) series.points.resize(at + 1);
    Series::Point& p = series.points[at];
    if (!r.ok) {
      ++p.failed;
      continue;
    }
    ++p.finished;
    p.prompt_tokens += r.prompt_tokens;
    p.cached_tokens += r.cached_tokens;
    p.ttft_mean_s += (Seconds(r.ttft()) - p.ttft_mean_s) / p.finished;
    p.ttft_max_s = std::max(p.ttft_max_s, Seconds(r.ttft()));
  }
  return series;
}

std::vector<double> Measure::SortedTtfts() const {
  std::vector<double> ttfts;
  for (const Record& r : records_) {
    if (r.counted && r.ok) ttfts.push_back(Seconds(r.ttft()));
  }
  std::ranges::sort(ttfts);
  return ttfts;
}

double Measure::RecoverySeconds(TimePoint change) const {
  constexpr Duration kStep = std::chrono::seconds(1);
  constexpr double kBack = 0.95;
  const Series series = MakeSeries(kStep);
  const auto hit = [&](size_t from, size_t to) {
    double prompt = 0, cached = 0;
    for (size_t i = from; i < std::min(to, series.points.size()); ++i) {
      prompt += static_cast<double>(series.points[i].prompt_tokens);
      cached += static_cast<double>(series.points[i].cached_tokens);
    }
    return Ratio(cached, prompt);
  };
  if (!first_counted_) return kUnknown;
  const auto changed = static_cast<size_t>(change / kStep);
  const double steady = hit(static_cast<size_t>(*first_counted_ / kStep), changed);
  return SecondsUntilBack(
      changed, static_cast<size_t>(*last_counted_ / kStep),
      [&](size_t from, size_t to) { return !(hit(from, to) < kBack * steady); });
}

}  // namespace hidane::sim
