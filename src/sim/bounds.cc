#include "sim/bounds.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "sim/future_cache.h"

namespace hidane::sim {
namespace {

using Place = PrefixForest::Place;

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
}

/// The forest's runs, cut wherever a path ends or branches off, so that each segment is needed
/// as a whole or not at all.
class Segments {
 public:
  Segments(const PrefixForest& forest, std::vector<Place> cuts) : forest_(forest), cuts_(cuts) {
    for (uint32_t run = 0; run < forest.runs(); ++run) cuts_.push_back(forest.parent(run));
    std::erase_if(cuts_, [](Place p) { return p.run == PrefixForest::kNone; });
    std::sort(cuts_.begin(), cuts_.end(),
              [](Place a, Place b) { return std::tie(a.run, a.depth) < std::tie(b.run, b.depth); });
    const auto same = [](Place a, Place b) { return a.run == b.run && a.depth == b.depth; };
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end(), same), cuts_.end());
    first_.assign(forest.runs() + 1, 0);
    for (const Place& cut : cuts_) ++first_[cut.run + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
  }

  size_t size() const { return cuts_.size(); }

  /// on(segment, tokens, depth of its end), the deepest first.
  template <class On>
  void Walk(Place end, On&& on) const {
    for (; end.run != PrefixForest::kNone; end = forest_.parent(end.run)) {
      uint32_t last = first_[end.run];
      while (last + 1 < first_[end.run + 1] && cuts_[last + 1].depth <= end.depth) ++last;
      for (uint32_t s = last + 1; s-- > first_[end.run];) {
        const uint32_t begin =
            s > first_[end.run] ? cuts_[s - 1].depth : forest_.parent(end.run).depth;
        on(s, cuts_[s].depth - begin, cuts_[s].depth);
      }
    }
  }

 private:
  const PrefixForest& forest_;
  std::vector<Place> cuts_;      ///< [segment] where it ends
  std::vector<uint32_t> first_;  ///< [run] its first segment; one past the end: all
};

}  // namespace

uint32_t HitBounds::Add(const Request& request) {
  const PrefixForest::Path path = forest_.Add(request);
  sent_.push_back({path.answer_end, request.prompt.bytes(), request.counted});
  cuts_.push_back(path.answer_end);
  cuts_.push_back(path.prompt_end);
  if (request.counted) {
    prompt_tokens_ += request.prompt.bytes();
    known_tokens_ += path.known;
  }
  return path.known;
}

double HitBounds::Infinite() const {
  return Ratio(static_cast<double>(known_tokens_), static_cast<double>(prompt_tokens_));
}

double HitBounds::Within(uint64_t kv_tokens) const {
  const Segments segments(forest_, cuts_);
  // From the end: when each segment of each step is needed again. A step's uses lie together.
  std::vector<uint32_t> next_use, later(segments.size(), FutureCache::kNever);
  std::vector<size_t> first_use(sent_.size());
  for (size_t step = sent_.size(); step-- > 0;) {
    first_use[step] = next_use.size();
    segments.Walk(sent_[step].end, [&](uint32_t segment, uint32_t, uint32_t) {
      next_use.push_back(std::exchange(later[segment], static_cast<uint32_t>(step)));
    });
  }
  FutureCache cache(kv_tokens, segments.size());
  uint64_t hits = 0;
  for (size_t step = 0; step < sent_.size(); ++step) {
    size_t use = first_use[step];
    const Sent& sent = sent_[step];
    segments.Walk(sent.end, [&](uint32_t segment, uint32_t tokens, uint32_t depth) {
      if (sent.counted && depth <= sent.prompt_tokens) hits += cache.Held(segment);
      cache.Put(segment, tokens, next_use[use++]);
    });
    cache.Shrink();
  }
  return Ratio(static_cast<double>(hits), static_cast<double>(prompt_tokens_));
}

double MakespanAtLeast(std::vector<double> seconds, uint32_t engines) {
  HIDANE_ASSERT(engines > 0);
  std::sort(seconds.begin(), seconds.end(), std::greater<>());
  double bound = std::accumulate(seconds.begin(), seconds.end(), 0.0) / engines;
  for (size_t each = 1; (each - 1) * engines < seconds.size(); ++each) {
    const size_t jobs = (each - 1) * engines + 1;
    const auto end = seconds.begin() + static_cast<std::ptrdiff_t>(jobs);
    bound = std::max(bound, std::accumulate(end - static_cast<std::ptrdiff_t>(each), end, 0.0));
  }
  return bound;
}

double MakespanBalanced(std::vector<double> seconds, uint32_t engines) {
  HIDANE_ASSERT(engines > 0);
  std::sort(seconds.begin(), seconds.end(), std::greater<>());
  std::vector<double> busy(engines, 0.0);
  for (const double job : seconds) *std::min_element(busy.begin(), busy.end()) += job;
  return *std::max_element(busy.begin(), busy.end());
}

ColdBurst BoundColdBurst(std::span<const Request> burst, const GpuSetup& gpu, uint32_t engines,
                         uint32_t chunk_tokens) {
  HitBounds hits;
  boost::unordered_flat_map<uint64_t, uint32_t> prefixes;
  for (const Request& request : burst) {
    hits.Add(request);
    prefixes.emplace(request.prompt.k1(), request.prompt.BytesAt(request.prompt.k1_end));
  }
  const StepModel model(gpu);
  std::vector<double> seconds;
  for (const auto& [key, tokens] : prefixes) {
    double job = 0;
    for (uint32_t done = 0; done < tokens; done += chunk_tokens) {
      const StepShape::Chunk chunk{std::min(chunk_tokens, tokens - done), done};
      job += model.PrefillSeconds({&chunk, 1});
    }
    seconds.push_back(job);
  }
  std::sort(seconds.begin(), seconds.end());  // not in the map's order, which sums would show
  return {.prefixes = static_cast<uint32_t>(prefixes.size()),
          .hit_ratio = hits.Infinite(),
          .at_least_s = MakespanAtLeast(seconds, engines),
          .balanced_s = MakespanBalanced(seconds, engines)};
}

}  // namespace hidane::sim
