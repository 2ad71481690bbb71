#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "model/model.h"
#include "vtoken/move_executor.h"

namespace hidane::engine {

/// Carries out an epoch's moves in the model's KV memory, on a thread of its own, beside sampling
/// and streaming. Few moves are done at once instead: a wake-up costs more than they do.
/// Start and Wait are called by the engine thread, which lets no attention run in between.
class KvMover final : public vtoken::MoveExecutor {
 public:
  /// Moves of one batch, up to which it is done within Start.
  static constexpr uint32_t kAtOnceMax = 256;

  /// `model` outlives the mover.
  explicit KvMover(model::Model& model, uint32_t at_once_max = kAtOnceMax);
  ~KvMover();
  KvMover(const KvMover&) = delete;
  KvMover& operator=(const KvMover&) = delete;

  /// Never fails. REQUIRES: the batch before was waited for.
  Result<vtoken::Fence> Start(std::span<const vtoken::MoveGroup> groups) override;
  /// Never fails.
  Status Wait(vtoken::Fence fence) override;

 private:
  struct Batch {
    model::KvUnit unit;
    std::vector<model::RowMove> moves;
  };
  void Work();
  void Move() const;

  model::Model& model_;
  const uint32_t at_once_max_;
  std::vector<Batch> batches_;  // of the fence started_, the first used_
  size_t used_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t started_ = 0, done_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hidane::engine
