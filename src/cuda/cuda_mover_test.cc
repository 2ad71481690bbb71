#include "cuda/cuda_mover.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "cuda/kv_move_kernel.h"

namespace hidane::cuda {
namespace {

using vtoken::MoveGroup;
using vtoken::Scope;
using vtoken::SlotMove;

constexpr model::KvLayout kLayout{.layers = 3, .kv_heads = 2, .head_dim = 64, .block_size = 16};
constexpr uint32_t kBlocks = 8;

/// KV memory on the device and what it should hold, side by side.
class CudaMoverTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    const size_t bytes = kBlocks * kLayout.block_bytes();
    for (uint32_t a = 0; a < kLayout.layers * 2; ++a) {
      std::vector<std::byte> host(bytes);
      for (size_t i = 0; i < bytes; ++i) host[i] = static_cast<std::byte>((i * 31 + a * 7) >> 3);
      std::byte* device = nullptr;
      ASSERT_EQ(cudaMalloc(&device, bytes), cudaSuccess);
      ASSERT_EQ(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
      arrays_.push_back(device);
      expected_.push_back(std::move(host));
    }
    mover_ = CudaMover::Create(kLayout, arrays_, {.moves_max = 64}).value();
  }
  void TearDown() override {
    mover_.reset();
    for (std::byte* array : arrays_) cudaFree(array);
  }

  /// The same moves in host memory, row by row.
  void Expect(const MoveGroup& group) {
    const uint32_t units = vtoken::UnitCount(group.scope, kLayout.layers, kLayout.kv_heads);
    const uint32_t each = kLayout.layers * kLayout.kv_heads / units;
    const uint32_t b = kLayout.block_size;
    for (const SlotMove& move : group.moves) {
      for (uint32_t row = move.unit * each; row < (move.unit + 1) * each; ++row) {
        const uint32_t head = row % kLayout.kv_heads;
        for (uint32_t kv = 0; kv < 2; ++kv) {
          std::byte* const array = expected_[row / kLayout.kv_heads * 2 + kv].data();
          std::memcpy(array + kLayout.RowOffset(move.to / b, head, move.to % b),
                      array + kLayout.RowOffset(move.from / b, head, move.from % b),
                      kLayout.row_bytes());
        }
      }
    }
  }

  void CheckMemory() {
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (size_t a = 0; a < arrays_.size(); ++a) {
      std::vector<std::byte> found(expected_[a].size());
      ASSERT_EQ(cudaMemcpy(found.data(), arrays_[a], found.size(), cudaMemcpyDeviceToHost),
                cudaSuccess);
      EXPECT_EQ(found, expected_[a]) << "array " << a;
    }
  }

  std::vector<std::byte*> arrays_;
  std::vector<std::vector<std::byte>> expected_;
  std::unique_ptr<CudaMover> mover_;
};

const std::vector<SlotMove> kWhole{{0, 100, 3}, {0, 127, 64}};
const std::vector<SlotMove> kLayers{{1, 17, 5}, {2, 17, 6}};
const std::vector<SlotMove> kHeads{{0, 33, 9}, {5, 34, 9}};

TEST_F(CudaMoverTest, MovesTheRowsOfEachUnitAndNoOthers) {
  const std::vector<MoveGroup> groups{
      {Scope::kSequence, kWhole}, {Scope::kLayer, kLayers}, {Scope::kKvHead, kHeads}};
  const auto fence = mover_->Start(groups);
  ASSERT_TRUE(fence) << fence.error().what;
  ASSERT_TRUE(mover_->Wait(*fence));
  for (const MoveGroup& group : groups) Expect(group);
  CheckMemory();
}

TEST_F(CudaMoverTest, ACapturedGraphReplaysWhateverIsStaged) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  ASSERT_TRUE(mover_->Stage({}));
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_TRUE(mover_->Enqueue(stream));
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&run, graph, 0), cudaSuccess);
  for (const std::vector<MoveGroup>& groups : std::vector<std::vector<MoveGroup>>{
           {}, {{Scope::kSequence, kWhole}}, {{Scope::kKvHead, kHeads}}, {}}) {
    ASSERT_TRUE(mover_->Stage(groups));
    ASSERT_EQ(cudaGraphLaunch(run, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    for (const MoveGroup& group : groups) Expect(group);
    CheckMemory();
  }
  cudaGraphExecDestroy(run);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_F(CudaMoverTest, RefusesWhatItCannotDo) {
  const std::vector<SlotMove> unknown{{6, 0, 1}}, many(65, SlotMove{0, 100, 3});
  const std::vector<MoveGroup> foreign{{Scope::kKvHead, unknown}}, big{{Scope::kSequence, many}};
  EXPECT_EQ(mover_->Start(foreign).error().what, "unit 6 of 6");
  EXPECT_EQ(mover_->Start(big).error().what, "65 moves in a mover of 64");
  CheckMemory();
}

// What the kernel does, thread by thread, without a GPU.
TEST(KvMoveKernel, ItsThreadsCopyTheRowsOfAMove) {
  const DeviceLayout layout{.arrays = nullptr,
                            .kv_heads = kLayout.kv_heads,
                            .block_size = kLayout.block_size,
                            .row_vectors = static_cast<uint32_t>(kLayout.row_bytes() / 16)};
  const DeviceMove move{.first_row = 3, .rows = 2, .from = 37, .to = 5};  // (1, 1) and (2, 0)
  uint32_t i = 0;
  for (const auto& [layer, head] : {std::pair{1u, 1u}, std::pair{2u, 0u}}) {
    for (uint32_t kv = 0; kv < 2; ++kv) {
      for (size_t byte = 0; byte < kLayout.row_bytes(); byte += 16, ++i) {
        const DeviceVector v = VectorOf(layout, move, i);
        EXPECT_EQ(v.array, layer * 2 + kv) << i;
        EXPECT_EQ(v.from * 16, kLayout.RowOffset(37 / 16, head, 37 % 16) + byte) << i;
        EXPECT_EQ(v.to * 16, kLayout.RowOffset(0, head, 5) + byte) << i;
      }
    }
  }
  EXPECT_EQ(i, VectorsOf(layout, move));
}

TEST(CudaMover, NamesALayoutThatItCannotMove) {
  model::KvLayout odd = kLayout;
  odd.head_dim = 4;
  EXPECT_EQ(CudaMover::Create(odd, {}, {}).error().what, "KV rows of 8 bytes: no multiple of 16");
  EXPECT_EQ(CudaMover::Create(kLayout, {}, {}).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace hidane::cuda
