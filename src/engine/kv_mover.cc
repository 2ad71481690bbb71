#include "engine/kv_mover.h"

#include "base/assert.h"

namespace hidane::engine {
namespace {

model::KvUnit UnitOf(vtoken::Scope scope) {
  if (scope == vtoken::Scope::kSequence) return model::KvUnit::kSequence;
  return scope == vtoken::Scope::kLayer ? model::KvUnit::kLayer : model::KvUnit::kKvHead;
}

}  // namespace

KvMover::KvMover(model::Model& model, uint32_t at_once_max)
    : model_(model), at_once_max_(at_once_max), thread_([this] { Work(); }) {}

KvMover::~KvMover() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

Result<vtoken::Fence> KvMover::Start(std::span<const vtoken::MoveGroup> groups) {
  size_t moves = 0;
  const std::lock_guard lock(mutex_);
  HIDANE_ASSERT(done_ == started_);
  if (batches_.size() < groups.size()) batches_.resize(groups.size());
  used_ = groups.size();
  for (size_t i = 0; i < groups.size(); ++i) {
    batches_[i].unit = UnitOf(groups[i].scope);
    batches_[i].moves.clear();
    for (const vtoken::SlotMove& move : groups[i].moves) {
      batches_[i].moves.push_back({move.unit, move.from, move.to});
    }
    moves += groups[i].moves.size();
  }
  ++started_;
  if (moves <= at_once_max_) {
    Move();
    done_ = started_;
  } else {
    changed_.notify_all();
  }
  return vtoken::Fence{started_};
}

Status KvMover::Wait(vtoken::Fence fence) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= fence.id; });
  return {};
}

void KvMover::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || done_ < started_; });
    if (done_ == started_) return;
    lock.unlock();  // the engine thread leaves the batches alone until they are done
    Move();
    lock.lock();
    done_ = started_;
    changed_.notify_all();
  }
}

void KvMover::Move() const {
  for (size_t i = 0; i < used_; ++i) model_.MoveRows(batches_[i].unit, batches_[i].moves);
}

}  // namespace hidane::engine
