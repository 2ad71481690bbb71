#include "model/gguf.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <utility>

namespace hidane::model {

namespace {

tl::unexpected<Error> Bad(std::string what) {
  return Fail(Code::kInvalidArgument, "gguf: " + std::move(what));
}

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// An encoded string whose length is known to be inside the file.
std::string_view LoadString(const std::byte* at) {
  return {reinterpret_cast<const char*>(at) + sizeof(uint64_t), Load<uint64_t>(at)};
}

/// An integer of any width as its value and sign.
struct Integer {
  bool negative;
  uint64_t bits;  ///< two's complement
};

Result<Integer> LoadInteger(GgufType type, const std::byte* at, std::string_view key) {
  const auto from_signed = [](int64_t v) { return Integer{v < 0, static_cast<uint64_t>(v)}; };
  switch (type) {
    case GgufType::kU8:
      return Integer{false, Load<uint8_t>(at)};
    case GgufType::kU16:
      return Integer{false, Load<uint16_t>(at)};
    case GgufType::kU32:
      return Integer{false, Load<uint32_t>(at)};
    case GgufType::kU64:
      return Integer{false, Load<uint64_t>(at)};
    case GgufType::kI8:
      return from_signed(Load<int8_t>(at));
    case GgufType::kI16:
      return from_signed(Load<int16_t>(at));
    case GgufType::kI32:
      return from_signed(Load<int32_t>(at));
    case GgufType::kI64:
      return from_signed(Load<int64_t>(at));
    default:
      return Bad(fmt::format("{} is not an integer", key));
  }
}

Result<int64_t> ToInt64(Integer v, std::string_view key) {
  if (!v.negative && v.bits > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return Bad(fmt::format("{} = {} is out of range", key, v.bits));
  }
  return static_cast<int64_t>(v.bits);
}

}  // namespace

BlockTraits TraitsOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return {1, 4};
    case TensorType::kF16:
    case TensorType::kBF16:
      return {1, 2};
    case TensorType::kQ4_1:
      return {32, 20};
    case TensorType::kQ8_0:
      return {32, 34};
  }
  return {1, 1};
}

Result<const GgufValue*> Gguf::Find(std::string_view key, bool is_array) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return Fail(Code::kNotFound, fmt::format("gguf: no metadata key {}", key));
  }
  if (found->second.is_array != is_array) {
    return Bad(fmt::format("{} is {}an array", key, is_array ? "not " : ""));
  }
  return &found->second;
}

Result<uint64_t> Gguf::Uint(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, false));
  HIDANE_TRY(const auto integer, LoadInteger(value->type, value->bytes.data(), key));
  if (integer.negative) return Bad(fmt::format("{} is negative", key));
  return integer.bits;
}

Result<int64_t> Gguf::Int(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, false));
  HIDANE_TRY(const auto integer, LoadInteger(value->type, value->bytes.data(), key));
  return ToInt64(integer, key);
}

Result<double> Gguf::Float(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, false));
  if (value->type == GgufType::kF32) return Load<float>(value->bytes.data());
  if (value->type == GgufType::kF64) return Load<double>(value->bytes.data());
  return Bad(fmt::format("{} is not a float", key));
}

Result<bool> Gguf::Bool(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, false));
  if (value->type != GgufType::kBool) return Bad(fmt::format("{} is not a bool", key));
  return value->bytes.front() == std::byte{1};
}

Result<std::string_view> Gguf::String(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, false));
  if (value->type != GgufType::kString) return Bad(fmt::format("{} is not a string", key));
  return LoadString(value->bytes.data());
}

Result<std::vector<std::string_view>> Gguf::Strings(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, true));
  if (value->type != GgufType::kString) return Bad(fmt::format("{} does not hold strings", key));
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  const std::byte* at = value->bytes.data();
  for (uint64_t i = 0; i < value->count; ++i) {
    strings.push_back(LoadString(at));
    at += sizeof(uint64_t) + strings.back().size();
  }
  return strings;
}

Result<std::vector<int32_t>> Gguf::Int32s(std::string_view key) const {
  HIDANE_TRY(const auto* value, Find(key, true));
  std::vector<int32_t> numbers;
  numbers.reserve(value->count);
  const size_t each = value->count == 0 ? 0 : value->bytes.size() / value->count;
  for (uint64_t i = 0; i < value->count; ++i) {
    HIDANE_TRY(const auto integer, LoadInteger(value->type, value->bytes.data() + i * each, key));
    HIDANE_TRY(const auto number, ToInt64(integer, key));
    if (number != static_cast<int32_t>(number)) {
      return Bad(fmt::format("{}[{}] = {} is out of range", key, i, number));
    }
    numbers.push_back(static_cast<int32_t>(number));
  }
  return numbers;
}

const GgufTensor* Gguf::FindTensor(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Result<GgufFile> GgufFile::Open(const std::string& path) {
  HIDANE_TRY(auto file, MappedFile::Open(path));
  HIDANE_TRY(auto gguf, Gguf::Parse(file.bytes()));
  return GgufFile{std::move(file), std::move(gguf)};
}

}  // namespace hidane::model
