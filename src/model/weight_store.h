#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/huge_pages.h"
#include "model/kernels.h"
#include "model/weight_cache.h"

namespace hidane::model {

/// Keeps a model's packed matrices for its life: in a cache file that every engine process of the
/// machine maps, so that four of them hold one copy (and one copy's share of the last-level cache),
/// or, without a directory for it, in memory of this process. Not thread-safe.
class WeightStore {
 public:
  WeightStore() = default;  ///< memory of this process

  /// With the cache of `model_path` in `dir`; missing or broken, it is built by what is packed. One
  /// process builds, others that start meanwhile wait for it. A cache that can't be written is a
  /// log line, and memory of this process instead. `dir` is created if it is missing.
  WeightStore(const std::string& dir, const std::string& model_path, bool bf16);
  ~WeightStore();

  /// The next matrix: out of the cache, or packed now. Cost: see PackPanels.
  PackedMatrix Pack(const WeightView& view, bool bf16);

  /// Everything is packed: publishes a cache that was built.
  void Finish();

  bool reads_cache() const { return cache_.has_value(); }

 private:
  std::byte* Allocate(PanelType type, const WeightView& view);
  void Unlock();

  std::optional<WeightCache> cache_;
  size_t next_ = 0;  ///< of the cache's matrices
  std::unique_ptr<WeightCacheBuilder> builder_;
  int lock_ = -1;    ///< held while building
  HugeArena owned_;  ///< matrices in this process's memory
};

}  // namespace hidane::model
