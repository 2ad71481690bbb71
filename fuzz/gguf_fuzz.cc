#include <cstddef>
#include <cstdint>
#include <span>

#include "model/gguf.h"
#include "model/weights.h"

/// Whatever parses must be readable in full: every view lies inside the input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hidane::model::Gguf;
  const auto gguf = Gguf::Parse(std::as_bytes(std::span(data, size)));
  if (!gguf) return 0;
  uint64_t sum = 0;
  for (const auto& [name, tensor] : gguf->tensors()) {
    const auto traits = hidane::model::TraitsOf(tensor.type);
    if (tensor.data.size() != tensor.rows() * tensor.cols() / traits.elements * traits.bytes) {
      __builtin_trap();
    }
    for (const auto byte : tensor.data) sum += static_cast<uint8_t>(byte);
  }
  for (const auto& [key, value] : gguf->metadata()) {
    if (const auto strings = gguf->Strings(key)) {
      for (const auto text : *strings) sum += text.empty() ? 0 : text.back();
    }
    if (const auto text = gguf->String(key)) sum += text->size();
    if (const auto numbers = gguf->Int32s(key)) sum += numbers->size();
    if (const auto number = gguf->Uint(key)) sum += *number;
    if (const auto number = gguf->Float(key)) sum += *number > 0;
  }
  if (const auto info = hidane::model::ReadModelInfo(*gguf)) {
    if (const auto tensors = hidane::model::BindTensors(*gguf, *info))
      sum += tensors->layers.size();
  }
  volatile uint64_t used = sum;
  static_cast<void>(used);
  return 0;
}
