#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/mapped_file.h"

namespace hidane::model {

/// Element types that the engine computes with, by their number in the format.
enum class TensorType : uint32_t { kF32 = 0, kF16 = 1, kQ4_1 = 3, kQ8_0 = 8, kBF16 = 30 };

/// A block is the unit of storage: `elements` values in `bytes` bytes.
struct BlockTraits {
  uint32_t elements;
  uint32_t bytes;
};
BlockTraits TraitsOf(TensorType type);

/// One tensor inside the file's bytes. Row-major; dims[0] is the contiguous dimension (the format's
/// order), dims beyond n_dims are 1, none is 0, and dims[0] is whole blocks.
struct GgufTensor {
  TensorType type;
  uint32_t n_dims;  ///< 1..4
  std::array<uint64_t, 4> dims;
  std::span<const std::byte>
      data;  ///< exactly the tensor's bytes, aligned to 8 or more in the file

  uint64_t cols() const { return dims[0]; }
  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
};

/// Metadata value types, by their number in the format.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64  // clang-format off
};  // clang-format on

/// A metadata value as it lies in the file: `count` elements of `type`; a scalar is one element.
struct GgufValue {
  GgufType type;  ///< of the elements; never kArray
  bool is_array;
  uint64_t count;
  std::span<const std::byte> bytes;  ///< the encoded elements, already checked
};

/// The parsed head of a GGUF v2 or v3 file: metadata and where each tensor lies.
///
/// Pure: bytes in, views into the same bytes out, which must outlive it. Every count, length,
/// offset and sum is checked against the file before it is used, so a hostile file costs at most a
/// few times its own size in memory. Immutable; safe for concurrent reads.
/// Source: the GGUF specification (ggml, docs/gguf.md).
class Gguf {
 public:
  static constexpr uint64_t kMetadataMax = 4096;  ///< entries
  static constexpr uint64_t kTensorsMax = 65536;
  static constexpr uint64_t kNameBytesMax = 1024;  ///< of a key or tensor name

  /// kInvalidArgument, naming what is wrong: foreign magic or version, a length or offset past the
  /// end, a duplicate key or tensor, a nested array, a key that is not printable ASCII, a tensor
  /// that is misaligned, overlaps another, has a zero dimension, a fraction of a block or an
  /// unsupported type.
  static Result<Gguf> Parse(std::span<const std::byte> file);

  // Typed metadata. kNotFound without the key, kInvalidArgument for another type or a value out of
  // range. Integers are accepted in any width and sign, floats in both widths.
  Result<uint64_t> Uint(std::string_view key) const;
  Result<int64_t> Int(std::string_view key) const;
  Result<double> Float(std::string_view key) const;
  Result<bool> Bool(std::string_view key) const;
  Result<std::string_view> String(std::string_view key) const;
  Result<std::vector<std::string_view>> Strings(std::string_view key) const;
  Result<std::vector<int32_t>> Int32s(std::string_view key) const;

  const std::map<std::string_view, GgufValue>& metadata() const { return metadata_; }
  const std::map<std::string_view, GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const;  ///< nullptr if there is none

 private:
  friend class GgufParser;
  Result<const GgufValue*> Find(std::string_view key, bool is_array) const;

  std::map<std::string_view, GgufValue> metadata_;
  std::map<std::string_view, GgufTensor> tensors_;
};

/// `value`, or `fallback` when the key was absent; any other error stays one.
template <class T, class U>
Result<T> OrDefault(Result<T> value, U fallback) {
  if (!value && value.error().code == Code::kNotFound) return static_cast<T>(fallback);
  return value;
}

/// A GGUF file held open: the mapping and the views into it.
struct GgufFile {
  MappedFile file;
  Gguf gguf;

  /// As MappedFile::Open and Gguf::Parse.
  static Result<GgufFile> Open(const std::string& path);
};

}  // namespace hidane::model
