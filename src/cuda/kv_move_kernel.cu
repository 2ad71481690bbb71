#include "cuda/kv_move_kernel.h"

namespace hidane::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// A thread block takes a move after the other, its threads the 16-byte vectors of the move's rows.
// Moves of a batch are disjoint, so nothing is ordered and nothing is staged.
__global__ void KvMove(DeviceLayout layout, const DeviceBatch* batch) {
  const auto* moves = reinterpret_cast<const DeviceMove*>(batch + 1);
  for (uint32_t m = blockIdx.x; m < batch->count; m += gridDim.x) {
    const DeviceMove move = moves[m];
    const uint32_t vectors = VectorsOf(layout, move);
    for (uint32_t i = threadIdx.x; i < vectors; i += kThreads) {
      const DeviceVector v = VectorOf(layout, move, i);
      auto* array = reinterpret_cast<uint4*>(layout.arrays[v.array]);
      array[v.to] = array[v.from];
    }
  }
}

}  // namespace

cudaError_t LaunchKvMove(const DeviceLayout& layout, const DeviceBatch* batch, uint32_t blocks,
                         cudaStream_t stream) {
  KvMove<<<blocks, kThreads, 0, stream>>>(layout, batch);
  return cudaGetLastError();
}

}  // namespace hidane::cuda
