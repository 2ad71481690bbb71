#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf.h"

namespace hidane::model {

/// Writes GGUF files for tests, valid ones and, piece by piece, broken ones. Header-only: no part
/// of the engine writes this format.
class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;
  uint64_t extra_tensors = 0;   ///< claimed in the header but absent
  uint64_t extra_metadata = 0;  ///< likewise

  template <class T>
  static std::string Bytes(T value) {
    std::string out(sizeof value, '\0');
    std::memcpy(out.data(), &value, sizeof value);
    return out;
  }
  static std::string Text(std::string_view text) {
    return Bytes<uint64_t>(text.size()) + std::string(text);
  }

  void Raw(std::string_view key, GgufType type, std::string_view encoded) {
    metadata_ += Text(key) + Bytes(static_cast<uint32_t>(type)) + std::string(encoded);
    ++n_metadata_;
  }
  void Uint(std::string_view key, uint32_t value) { Raw(key, GgufType::kU32, Bytes(value)); }
  void Float(std::string_view key, float value) { Raw(key, GgufType::kF32, Bytes(value)); }
  void String(std::string_view key, std::string_view value) {
    Raw(key, GgufType::kString, Text(value));
  }
  void Array(std::string_view key, GgufType type, uint64_t count, std::string_view encoded) {
    Raw(key, GgufType::kArray,
        Bytes(static_cast<uint32_t>(type)) + Bytes(count) + std::string(encoded));
  }
  void Strings(std::string_view key, std::span<const std::string> values) {
    std::string encoded;
    for (const auto& value : values) encoded += Text(value);
    Array(key, GgufType::kString, values.size(), encoded);
  }

  /// `type` and `offset` as numbers, so that a test may claim anything. The data follows the
  /// tensors before it, padded to the alignment.
  void Tensor(std::string_view name, std::span<const uint64_t> dims, uint32_t type,
              std::string_view data) {
    TensorAt(name, dims, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
  }
  void TensorAt(std::string_view name, std::span<const uint64_t> dims, uint32_t type,
                uint64_t offset) {
    tensors_ += Text(name) + Bytes(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) tensors_ += Bytes(dim);
    tensors_ += Bytes(type) + Bytes(offset);
    ++n_tensors_;
  }

  std::string Build() const {
    std::string file = "GGUF" + Bytes(version) + Bytes(n_tensors_ + extra_tensors) +
                       Bytes(n_metadata_ + extra_metadata) + metadata_ + tensors_;
    if (alignment > 0) file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    return file + data_;
  }

 private:
  std::string metadata_, tensors_, data_;
  uint64_t n_metadata_ = 0, n_tensors_ = 0;
};

}  // namespace hidane::model
