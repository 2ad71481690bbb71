#include "model/weight_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace hidane::model {
namespace {

/// Waits for and holds `path`.lock; -1 if there can't be one. The kernel drops it with its process.
int Lock(const std::string& path) {
  const int fd = ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) ::flock(fd, LOCK_EX);
  return fd;
}

}  // namespace

WeightStore::WeightStore(const std::string& dir, const std::string& model_path, bool bf16) {
  std::error_code ignored;  // what follows fails then, too
  std::filesystem::create_directories(dir, ignored);
  const Result<std::string> path = WeightCachePath(dir, model_path, bf16);
  if (!path) return;  // no model file: whoever loads it says so
  Result<WeightCache> cache = WeightCache::Open(*path);
  if (!cache) {
    lock_ = Lock(*path);
    cache = WeightCache::Open(*path);  // another process may have built it meanwhile
  }
  if (cache) {
    cache_ = *std::move(cache);
    Unlock();
    return;
  }
  if (cache.error().code != Code::kNotFound)
    log::Warn("weight_cache.rejected", {{"reason", cache.error().what}});
  Result<std::unique_ptr<WeightCacheBuilder>> builder = WeightCacheBuilder::Make(*path);
  if (builder) {
    builder_ = *std::move(builder);
  } else {
    log::Warn("weight_cache.not_written", {{"reason", builder.error().what}});
    Unlock();
  }
}

WeightStore::~WeightStore() {
  Unlock();
}

void WeightStore::Unlock() {
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

PackedMatrix WeightStore::Pack(const WeightView& view, bool bf16) {
  const PanelType type = PackedType(view.type, bf16);
  if (cache_ && next_ < cache_->matrices.size()) {
    const PackedMatrix& m = cache_->matrices[next_++];
    if (m.type == type && m.rows == view.rows && m.cols == view.cols) return m;
  }
  std::byte* const data = Allocate(type, view);
  PackPanels(view, type, data);
  return {type, view.rows, view.cols, data};
}

std::byte* WeightStore::Allocate(PanelType type, const WeightView& view) {
  if (builder_ != nullptr) {
    const Result<std::byte*> room = builder_->Add(type, view.rows, view.cols);
    if (room) return *room;  // else Finish will tell
  }
  return owned_.Allocate(PackedBytes(type, view.rows, view.cols));
}

void WeightStore::Finish() {
  if (builder_ != nullptr) {
    if (const Status published = builder_->Publish(); !published)
      log::Warn("weight_cache.not_written", {{"reason", published.error().what}});
  }
  Unlock();
}

}  // namespace hidane::model
