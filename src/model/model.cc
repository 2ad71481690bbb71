#include "model/model.h"

#include <fmt/format.h>

#include <utility>

#include "model/llama.h"
#include "model/weight_store.h"
#include "model/weights.h"

namespace hidane::model {
namespace {

constexpr uint32_t kBlockSizeMax = 256;
constexpr uint32_t kStepTokensMax = 1 << 16;
constexpr uint32_t kThreadsMax = 1024;

Status CheckRange(const char* name, uint32_t value, uint32_t max) {
  if (value >= 1 && value <= max) return {};
  return Fail(Code::kInvalidArgument, fmt::format("{} = {} is not in 1..{}", name, value, max));
}

Status Validate(const ModelOptions& options) {
  HIDANE_CHECK_OK(CheckRange("block_size", options.block_size, kBlockSizeMax));
  HIDANE_CHECK_OK(CheckRange("kv_blocks", options.kv_blocks, UINT32_MAX));
  HIDANE_CHECK_OK(CheckRange("threads", options.threads, kThreadsMax));
  return CheckRange("step_tokens_max", options.step_tokens_max, kStepTokensMax);
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Load(const std::string& gguf_path,
                                           const ModelOptions& options) {
  HIDANE_CHECK_OK(Validate(options));
  HIDANE_TRY(auto kernels, KernelsFor(gguf_path, options));
  return LoadLlama(gguf_path, options, std::move(kernels));
}

Result<std::unique_ptr<Kernels>> KernelsFor(const std::string& gguf_path,
                                            const ModelOptions& options) {
  const bool asked = options.precision == Precision::kBf16;
  if (options.reference_kernels) return MakeReferenceKernels(asked);
  if (asked && !CpuMultipliesBf16())
    return Fail(Code::kInvalidArgument, "precision = bf16: this CPU has no bf16 dot products");
  const bool bf16 = options.precision != Precision::kF32 && CpuMultipliesBf16();
  if (options.weight_cache_dir.empty()) return MakeFastKernels(options.threads, bf16);
  auto weights = std::make_unique<WeightStore>(options.weight_cache_dir, gguf_path, bf16);
  return MakeFastKernels(options.threads, bf16, std::move(weights));
}

Result<std::unique_ptr<Model>> LoadLlama(const std::string& gguf_path, const ModelOptions& options,
                                         std::unique_ptr<Kernels> kernels) {
  HIDANE_TRY(auto file, GgufFile::Open(gguf_path));
  HIDANE_TRY(auto info, ReadModelInfo(file.gguf));
  HIDANE_TRY(const auto tensors, BindTensors(file.gguf, info));
  const KvLayout layout{.layers = info.layers,
                        .kv_heads = info.kv_heads,
                        .head_dim = info.head_dim,
                        .block_size = options.block_size,
                        .element_bytes = kernels->bf16() ? 2u : 4u};
  HIDANE_TRY(auto kv, KvMemory::Allocate(layout, options.kv_blocks));
  Llama::Parts parts{std::move(file), std::move(info), layout, std::move(kernels), std::move(kv)};
  std::unique_ptr<Model> model = std::make_unique<Llama>(std::move(parts), tensors, options);
  return model;
}

}  // namespace hidane::model
