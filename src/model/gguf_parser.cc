#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "model/gguf.h"

namespace hidane::model {

static_assert(std::endian::native == std::endian::little, "the format's numbers are read in place");

namespace {

tl::unexpected<Error> Bad(std::string what) {
  return Fail(Code::kInvalidArgument, "gguf: " + std::move(what));
}

/// The name of a tensor type that the format defines and this engine does not compute with.
std::string_view UnsupportedName(uint32_t type) {
  static constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {2, "Q4_0"},     {6, "Q5_0"},    {7, "Q5_1"},     {9, "Q8_1"},   {10, "Q2_K"},
      {11, "Q3_K"},    {12, "Q4_K"},   {13, "Q5_K"},    {14, "Q6_K"},  {15, "Q8_K"},
      {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},
      {21, "IQ3_S"},   {22, "IQ2_S"},  {23, "IQ4_XS"},  {24, "I8"},    {25, "I16"},
      {26, "I32"},     {27, "I64"},    {28, "F64"},     {29, "IQ1_M"}, {34, "TQ1_0"},
      {35, "TQ2_0"},   {39, "MXFP4"}};
  for (const auto& [number, name] : kNames) {
    if (number == type) return name;
  }
  return "unknown";
}

bool IsSupported(uint32_t type) {
  switch (static_cast<TensorType>(type)) {
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kQ4_1:
    case TensorType::kQ8_0:
    case TensorType::kBF16:
      return true;
  }
  return false;
}

/// Bytes of one element; 0 for strings, whose length is in the file.
size_t ElementBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

bool IsPrintableAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

/// Walks the file once, from its start; position_ never passes the end.
class GgufParser {
 public:
  explicit GgufParser(std::span<const std::byte> file) : file_(file) {}

  Result<Gguf> Parse() {
    HIDANE_TRY(const auto counts, Header());
    for (uint64_t i = 0; i < counts.metadata; ++i) HIDANE_CHECK_OK(Metadata());
    for (uint64_t i = 0; i < counts.tensors; ++i) HIDANE_CHECK_OK(TensorHead());
    HIDANE_CHECK_OK(PlaceTensors());
    return std::move(gguf_);
  }

 private:
  struct Counts {
    uint64_t tensors, metadata;
  };

  size_t remaining() const { return file_.size() - position_; }

  template <class T>
  Result<T> Read(std::string_view what) {
    if (remaining() < sizeof(T)) return Bad(fmt::format("file ends inside {}", what));
    T value;
    std::memcpy(&value, file_.data() + position_, sizeof value);
    position_ += sizeof(T);
    return value;
  }

  Result<std::string_view> ReadString(std::string_view what) {
    HIDANE_TRY(const auto length, Read<uint64_t>(what));
    if (length > remaining()) {
      return Bad(fmt::format("{}: string of {} bytes passes the end", what, length));
    }
    const std::string_view text(reinterpret_cast<const char*>(file_.data()) + position_, length);
    position_ += length;
    return text;
  }

  Result<std::string_view> ReadName(std::string_view what) {
    HIDANE_TRY(const auto name, ReadString(what));
    if (name.empty() || name.size() > Gguf::kNameBytesMax || !IsPrintableAscii(name)) {
      return Bad(fmt::format("{} of {} bytes at byte {} is not 1..{} printable ASCII characters",
                             what, name.size(), position_ - name.size(), Gguf::kNameBytesMax));
    }
    return name;
  }

  Result<Counts> Header() {
    HIDANE_TRY(const auto magic, Read<uint32_t>("the magic"));
    if (magic != 0x46554747) return Bad(fmt::format("magic 0x{:08x} is not GGUF", magic));
    HIDANE_TRY(const auto version, Read<uint32_t>("the version"));
    if (version != 2 && version != 3) {
      return Bad(fmt::format("version {} is not 2 or 3 (little-endian)", version));
    }
    HIDANE_TRY(const auto tensors, Read<uint64_t>("the tensor count"));
    HIDANE_TRY(const auto metadata, Read<uint64_t>("the metadata count"));
    if (tensors > Gguf::kTensorsMax) return Bad(fmt::format("{} tensors are too many", tensors));
    if (metadata > Gguf::kMetadataMax) {
      return Bad(fmt::format("{} metadata entries are too many", metadata));
    }
    return Counts{tensors, metadata};
  }

  Result<GgufType> ReadType(std::string_view key) {
    HIDANE_TRY(const auto type, Read<uint32_t>(key));
    if (type > static_cast<uint32_t>(GgufType::kF64)) {
      return Bad(fmt::format("{} has the unknown value type {}", key, type));
    }
    return static_cast<GgufType>(type);
  }

  Status Metadata() {
    HIDANE_TRY(const auto key, ReadName("a metadata key"));
    HIDANE_TRY(auto type, ReadType(key));
    GgufValue value{type, type == GgufType::kArray, 1, {}};
    if (value.is_array) {
      HIDANE_TRY(value.type, ReadType(key));
      if (value.type == GgufType::kArray) return Bad(fmt::format("{} is a nested array", key));
      HIDANE_TRY(value.count, Read<uint64_t>(key));
    }
    HIDANE_TRY(value.bytes, ReadElements(value, key));
    if (!gguf_.metadata_.emplace(key, value).second) {
      return Bad(fmt::format("duplicate metadata key {}", key));
    }
    return {};
  }

  Result<std::span<const std::byte>> ReadElements(const GgufValue& value, std::string_view key) {
    const size_t start = position_;
    if (value.type == GgufType::kString) {
      for (uint64_t i = 0; i < value.count; ++i) {
        if (auto text = ReadString(key); !text) return Fail(std::move(text).error());
      }
    } else {
      const size_t each = ElementBytes(value.type);
      if (value.count > remaining() / each) {
        return Bad(fmt::format("{}: {} elements pass the end", key, value.count));
      }
      position_ += value.count * each;
    }
    const auto bytes = file_.subspan(start, position_ - start);
    if (value.type == GgufType::kBool &&
        std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; })) {
      return Bad(fmt::format("{} holds a bool that is neither 0 nor 1", key));
    }
    return bytes;
  }

  /// Reads one tensor's name, shape, type and offset; its data is placed when all heads are read,
  /// because only then is the start of the data known.
  Status TensorHead() {
    HIDANE_TRY(const auto name, ReadName("a tensor name"));
    HIDANE_TRY(const auto n_dims, Read<uint32_t>(name));
    if (n_dims < 1 || n_dims > 4) {
      return Bad(fmt::format("tensor {} has {} dimensions, not 1..4", name, n_dims));
    }
    GgufTensor tensor{{}, n_dims, {1, 1, 1, 1}, {}};
    for (uint32_t i = 0; i < n_dims; ++i) {
      HIDANE_TRY(tensor.dims[i], Read<uint64_t>(name));
      if (tensor.dims[i] == 0) return Bad(fmt::format("tensor {} has a zero dimension", name));
    }
    HIDANE_TRY(const auto type, Read<uint32_t>(name));
    if (!IsSupported(type)) {
      return Bad(fmt::format("tensor {} has the unsupported type {} ({})", name, type,
                             UnsupportedName(type)));
    }
    tensor.type = static_cast<TensorType>(type);
    HIDANE_TRY(const auto offset, Read<uint64_t>(name));
    HIDANE_TRY(const auto size, SizeOf(tensor, name));
    if (!gguf_.tensors_.emplace(name, tensor).second) {
      return Bad(fmt::format("duplicate tensor {}", name));
    }
    placements_.push_back({offset, size, name});
    return {};
  }

  /// Bytes of a tensor; no product here can wrap, because each is first held against the file.
  Result<uint64_t> SizeOf(const GgufTensor& tensor, std::string_view name) const {
    const BlockTraits traits = TraitsOf(tensor.type);
    if (tensor.dims[0] % traits.elements != 0) {
      return Bad(fmt::format("tensor {}: {} columns are not a multiple of the block of {}", name,
                             tensor.dims[0], traits.elements));
    }
    uint64_t blocks = tensor.dims[0] / traits.elements;
    const uint64_t blocks_max = file_.size() / traits.bytes;
    for (uint32_t i = 1; i < tensor.n_dims && blocks <= blocks_max; ++i) {
      blocks = tensor.dims[i] > blocks_max / blocks ? blocks_max + 1 : blocks * tensor.dims[i];
    }
    if (blocks > blocks_max) return Bad(fmt::format("tensor {} is larger than the file", name));
    return blocks * traits.bytes;
  }

  Status PlaceTensors() {
    HIDANE_TRY(const auto alignment, OrDefault(gguf_.Uint("general.alignment"), 32));
    if (!std::has_single_bit(alignment) || alignment < 8 || alignment > 65536) {
      return Bad(
          fmt::format("general.alignment = {} is not a power of two in 8..65536", alignment));
    }
    // position_ <= file size < 2^63: the sum can't wrap.
    const uint64_t start = (position_ + alignment - 1) / alignment * alignment;
    const uint64_t length = start < file_.size() ? file_.size() - start : 0;
    std::sort(placements_.begin(), placements_.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    uint64_t used = 0;
    for (const auto& [offset, size, name] : placements_) {
      if (offset % alignment != 0) {
        return Bad(
            fmt::format("tensor {} at offset {} is not aligned to {}", name, offset, alignment));
      }
      if (offset < used) return Bad(fmt::format("tensor {} overlaps the one before it", name));
      if (offset > length || size > length - offset) {
        return Bad(
            fmt::format("tensor {} of {} bytes at offset {} passes the end", name, size, offset));
      }
      used = offset + size;
      gguf_.tensors_.find(name)->second.data = file_.subspan(start + offset, size);
    }
    return {};
  }

  struct Placement {
    uint64_t offset, size;
    std::string_view name;
  };

  std::span<const std::byte> file_;
  size_t position_ = 0;
  std::vector<Placement> placements_;
  Gguf gguf_;
};

Result<Gguf> Gguf::Parse(std::span<const std::byte> file) {
  return GgufParser(file).Parse();
}

}  // namespace hidane::model
