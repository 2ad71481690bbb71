#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "model/kv_layout.h"
#include "vtoken/move_executor.h"

namespace hidane::cuda {

/// Carries out an epoch's moves in KV memory on a GPU: one batched gather-scatter launch on a
/// stream of its own, beside whatever the compute stream does.
///
///     compute  ── attention N ──┬──────────────── wait(done) ── attention N+1
///     side                      └─ upload, move ── done
///
/// All device addresses are fixed from Create on, the launch is always the same, and a batch of
/// none is inert: what captures Enqueue in a graph can replay it after each Stage. No allocation
/// and no host synchronisation after Create, but that Stage waits until the batch before has been
/// read. One thread.
class CudaMover final : public vtoken::MoveExecutor {
 public:
  struct Options {
    uint32_t moves_max = 65'536;     ///< of one batch, over all groups; >= 1
    void* compute_stream = nullptr;  ///< cudaStream_t that attention runs on; nullptr: the default
  };

  /// `arrays`: [layers][K, V] device pointers, each as `layout` says and 16-byte aligned; they
  /// outlive the mover. kInvalidArgument: rows that are no multiple of 16 bytes, or another number
  /// of arrays. kUnavailable: no device, or the driver says no.
  static Result<std::unique_ptr<CudaMover>> Create(const model::KvLayout& layout,
                                                   std::span<std::byte* const> arrays,
                                                   const Options& options);
  ~CudaMover();

  /// Enqueues the batch behind what the compute stream has been given so far. kInvalidArgument:
  /// more than moves_max moves, or a unit that the layout doesn't have; kUnavailable as Create.
  Result<vtoken::Fence> Start(std::span<const vtoken::MoveGroup> groups) override;
  /// The compute stream waits; the host doesn't.
  Status Wait(vtoken::Fence fence) override;

  // Start's halves, for a host that captures its step in a graph.
  /// Makes `groups` the batch that the next run of Enqueue carries out. REQUIRES: what Enqueue was
  /// given to before has run (Start's batches are waited for). Errors as Start, and then the batch
  /// is the one before.
  Status Stage(std::span<const vtoken::MoveGroup> groups);
  /// Upload and launch on `stream` (a cudaStream_t), which may be capturing. The upload is always
  /// of moves_max moves: a captured copy can't change its length.
  Status Enqueue(void* stream);

 private:
  struct Device;
  explicit CudaMover(std::unique_ptr<Device> device);

  std::unique_ptr<Device> device_;
  uint64_t started_ = 0;
};

}  // namespace hidane::cuda
