#include "cuda/cuda_mover.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "cuda/kv_move_kernel.h"

namespace hidane::cuda {
namespace {

Status Check(cudaError_t code, std::string_view what) {
  if (code == cudaSuccess) return {};
  return Fail(Code::kUnavailable, fmt::format("{}: {}", what, cudaGetErrorString(code)));
}

uint32_t UnitsOf(const model::KvLayout& layout, vtoken::Scope scope) {
  return vtoken::UnitCount(scope, layout.layers, layout.kv_heads);
}

Status Known(const model::KvLayout& layout, const vtoken::MoveGroup& group,
             const vtoken::SlotMove& move) {
  const uint32_t units = UnitsOf(layout, group.scope);
  if (move.unit < units) return {};
  return Fail(Code::kInvalidArgument, fmt::format("unit {} of {}", move.unit, units));
}

/// The rows that a unit stands for.
DeviceMove RowsOf(const model::KvLayout& layout, vtoken::Scope scope,
                  const vtoken::SlotMove& move) {
  const uint32_t each = layout.layers * layout.kv_heads / UnitsOf(layout, scope);
  return {.first_row = move.unit * each, .rows = each, .from = move.from, .to = move.to};
}

}  // namespace

struct CudaMover::Device {
  model::KvLayout layout;
  uint32_t moves_max = 0, blocks = 0, staged_moves = 0;
  cudaStream_t compute = nullptr, side = nullptr;
  cudaEvent_t computed = nullptr, uploaded = nullptr, done = nullptr;
  std::byte** arrays = nullptr;  // on the device
  std::byte* staged = nullptr;   // pinned host memory: a DeviceBatch and its moves
  std::byte* batch = nullptr;    // the same on the device

  DeviceLayout kernel_layout() const {
    return {.arrays = arrays,
            .kv_heads = layout.kv_heads,
            .block_size = layout.block_size,
            .row_vectors = static_cast<uint32_t>(layout.row_bytes() / 16)};
  }
  static size_t BatchBytes(uint32_t moves) {
    return sizeof(DeviceBatch) + moves * sizeof(DeviceMove);
  }
  Status Allocate(std::span<std::byte* const> pointers);
  Status Upload(size_t bytes, cudaStream_t on);
  Status Launch(cudaStream_t on);
  ~Device();
};

Status CudaMover::Device::Allocate(std::span<std::byte* const> pointers) {
  int device = 0, processors = 0;
  HIDANE_CHECK_OK(Check(cudaGetDevice(&device), "no CUDA device"));
  HIDANE_CHECK_OK(
      Check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "device"));
  blocks = 8 * static_cast<uint32_t>(processors);  // of 256 threads: what a processor holds
  HIDANE_CHECK_OK(Check(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "stream"));
  for (cudaEvent_t* event : {&computed, &uploaded, &done}) {
    HIDANE_CHECK_OK(Check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event"));
  }
  HIDANE_CHECK_OK(Check(cudaMalloc(&arrays, pointers.size_bytes()), "device memory"));
  HIDANE_CHECK_OK(Check(
      cudaMemcpy(arrays, pointers.data(), pointers.size_bytes(), cudaMemcpyHostToDevice), "copy"));
  HIDANE_CHECK_OK(Check(cudaMallocHost(&staged, BatchBytes(moves_max)), "pinned memory"));
  HIDANE_CHECK_OK(Check(cudaMalloc(&batch, BatchBytes(moves_max)), "device memory"));
  std::memset(staged, 0, BatchBytes(moves_max));
  return {};
}

CudaMover::Device::~Device() {
  if (side != nullptr) cudaStreamSynchronize(side);
  for (cudaEvent_t event : {computed, uploaded, done}) {
    if (event != nullptr) cudaEventDestroy(event);
  }
  if (side != nullptr) cudaStreamDestroy(side);
  cudaFree(arrays);
  cudaFree(batch);
  cudaFreeHost(staged);
}

Result<std::unique_ptr<CudaMover>> CudaMover::Create(const model::KvLayout& layout,
                                                     std::span<std::byte* const> arrays,
                                                     const Options& options) {
  if (layout.row_bytes() % 16 != 0) {
    return Fail(Code::kInvalidArgument,
                fmt::format("KV rows of {} bytes: no multiple of 16", layout.row_bytes()));
  }
  if (arrays.size() != size_t{layout.layers} * 2 || options.moves_max == 0) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} arrays for {} layers, {} moves at most", arrays.size(),
                            layout.layers, options.moves_max));
  }
  auto device = std::make_unique<Device>();
  device->layout = layout;
  device->moves_max = options.moves_max;
  device->compute = static_cast<cudaStream_t>(options.compute_stream);
  HIDANE_CHECK_OK(device->Allocate(arrays));
  return std::unique_ptr<CudaMover>(new CudaMover(std::move(device)));
}

CudaMover::CudaMover(std::unique_ptr<Device> device) : device_(std::move(device)) {}
CudaMover::~CudaMover() = default;

Status CudaMover::Stage(std::span<const vtoken::MoveGroup> groups) {
  Device& d = *device_;
  HIDANE_CHECK_OK(Check(cudaEventSynchronize(d.uploaded), "the batch before"));
  // Checked first, so that an error leaves the batch before as it was.
  size_t moves = 0;
  for (const vtoken::MoveGroup& group : groups) {
    moves += group.moves.size();
    for (const vtoken::SlotMove& move : group.moves) HIDANE_CHECK_OK(Known(d.layout, group, move));
  }
  if (moves > d.moves_max) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} moves in a mover of {}", moves, d.moves_max));
  }
  d.staged_moves = static_cast<uint32_t>(moves);
  const DeviceBatch header{.count = d.staged_moves, .padding = {}};
  std::memcpy(d.staged, &header, sizeof header);
  auto* to = reinterpret_cast<DeviceMove*>(d.staged + sizeof header);
  for (const vtoken::MoveGroup& group : groups) {
    for (const vtoken::SlotMove& move : group.moves) *to++ = RowsOf(d.layout, group.scope, move);
  }
  return {};
}

Status CudaMover::Device::Upload(size_t bytes, cudaStream_t on) {
  return Check(cudaMemcpyAsync(batch, staged, bytes, cudaMemcpyHostToDevice, on), "upload");
}

Status CudaMover::Device::Launch(cudaStream_t on) {
  return Check(LaunchKvMove(kernel_layout(), reinterpret_cast<DeviceBatch*>(batch), blocks, on),
               "launch");
}

Status CudaMover::Enqueue(void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  HIDANE_CHECK_OK(device_->Upload(device_->BatchBytes(device_->moves_max), on));
  return device_->Launch(on);
}

Result<vtoken::Fence> CudaMover::Start(std::span<const vtoken::MoveGroup> groups) {
  Device& d = *device_;
  HIDANE_CHECK_OK(Stage(groups));
  // Sources were written, and destinations last read, by what the compute stream already has.
  HIDANE_CHECK_OK(Check(cudaEventRecord(d.computed, d.compute), "event"));
  HIDANE_CHECK_OK(Check(cudaStreamWaitEvent(d.side, d.computed, 0), "event"));
  HIDANE_CHECK_OK(d.Upload(d.BatchBytes(d.staged_moves), d.side));
  HIDANE_CHECK_OK(Check(cudaEventRecord(d.uploaded, d.side), "event"));
  HIDANE_CHECK_OK(d.Launch(d.side));
  HIDANE_CHECK_OK(Check(cudaEventRecord(d.done, d.side), "event"));
  return vtoken::Fence{++started_};
}

Status CudaMover::Wait(vtoken::Fence fence) {
  if (fence.id > started_) return Fail(Code::kInvalidArgument, "a fence of another mover");
  return Check(cudaStreamWaitEvent(device_->compute, device_->done, 0), "event");
}

}  // namespace hidane::cuda
