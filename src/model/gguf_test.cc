#include "model/gguf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/gguf_builder.h"

namespace hidane::model {
namespace {

using Dims = std::vector<uint64_t>;
constexpr auto kF32 = static_cast<uint32_t>(TensorType::kF32);
constexpr auto kQ8_0 = static_cast<uint32_t>(TensorType::kQ8_0);
constexpr uint64_t kNear63 = (uint64_t{1} << 63) - 1;

std::span<const std::byte> AsBytes(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

/// The parse of a file that lives as long as the answer.
struct Parsed {
  explicit Parsed(const GgufBuilder& builder)
      : file(builder.Build()), gguf(Gguf::Parse(AsBytes(file))) {}
  std::string file;
  Result<Gguf> gguf;
};

void ExpectRefused(const GgufBuilder& builder) {
  const Parsed parsed(builder);
  ASSERT_FALSE(parsed.gguf);
  EXPECT_EQ(parsed.gguf.error().code, Code::kInvalidArgument);
}

GgufBuilder Valid() {
  GgufBuilder b;
  b.String("general.architecture", "llama");
  b.Uint("llama.block_count", 2);
  b.Float("eps", 0.5f);
  b.Tensor("a", Dims{4, 2}, kF32, std::string(32, 'a'));
  b.Tensor("b", Dims{32}, kQ8_0, std::string(34, 'b'));
  return b;
}

TEST(Gguf, ReadsMetadataByTypeAndTensorsByName) {
  GgufBuilder b = Valid();
  b.Raw("yes", GgufType::kBool, GgufBuilder::Bytes<uint8_t>(1));
  b.Raw("minus", GgufType::kI16, GgufBuilder::Bytes<int16_t>(-3));
  b.Strings("words", std::vector<std::string>{"un", "", "deux"});
  b.Array("ids", GgufType::kU8, 3, "\x01\x02\xff");
  const Parsed parsed(b);
  ASSERT_TRUE(parsed.gguf) << parsed.gguf.error().what;
  const Gguf& g = *parsed.gguf;

  EXPECT_EQ(g.String("general.architecture").value(), "llama");
  EXPECT_EQ(g.Uint("llama.block_count").value(), 2u);
  EXPECT_EQ(g.Float("eps").value(), 0.5);
  EXPECT_TRUE(g.Bool("yes").value());
  EXPECT_EQ(g.Int("minus").value(), -3);
  EXPECT_EQ(g.Strings("words").value(), (std::vector<std::string_view>{"un", "", "deux"}));
  EXPECT_EQ(g.Int32s("ids").value(), (std::vector<int32_t>{1, 2, 255}));

  const GgufTensor* a = g.FindTensor("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->cols(), 4u);
  EXPECT_EQ(a->rows(), 2u);
  EXPECT_EQ(a->data.size(), 32u);
  EXPECT_EQ(a->data.front(), std::byte{'a'});
  EXPECT_EQ(g.FindTensor("b")->data.front(), std::byte{'b'});
  EXPECT_EQ(g.FindTensor("c"), nullptr);
}

TEST(Gguf, AccessorsTellAbsentFromWrong) {
  const Parsed parsed(Valid());
  const Gguf& g = *parsed.gguf;
  EXPECT_EQ(g.Uint("nothing").error().code, Code::kNotFound);
  EXPECT_EQ(OrDefault(g.Uint("nothing"), 7).value(), 7u);
  EXPECT_EQ(g.Uint("eps").error().code, Code::kInvalidArgument);
  EXPECT_EQ(OrDefault(g.Uint("eps"), 7).error().code, Code::kInvalidArgument);
  EXPECT_EQ(g.Strings("eps").error().code, Code::kInvalidArgument);
  EXPECT_EQ(g.Bool("llama.block_count").error().code, Code::kInvalidArgument);
}

TEST(Gguf, IntegersOutOfRangeAreRefusedWhenRead) {
  GgufBuilder b = Valid();
  b.Raw("huge", GgufType::kU64, GgufBuilder::Bytes(~uint64_t{0}));
  b.Raw("minus", GgufType::kI8, "\xff");
  b.Array("wide", GgufType::kI64, 1, GgufBuilder::Bytes(int64_t{1} << 40));
  const Parsed parsed(b);
  EXPECT_EQ(parsed.gguf->Int("huge").error().code, Code::kInvalidArgument);
  EXPECT_EQ(parsed.gguf->Uint("minus").error().code, Code::kInvalidArgument);
  EXPECT_EQ(parsed.gguf->Int32s("wide").error().code, Code::kInvalidArgument);
}

TEST(Gguf, RefusesForeignMagicAndVersions) {
  std::string file = Valid().Build();
  file[0] = 'X';
  EXPECT_FALSE(Gguf::Parse(AsBytes(file)));
  for (const uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    GgufBuilder b = Valid();
    b.version = version;
    ExpectRefused(b);
  }
  GgufBuilder two = Valid();
  two.version = 2;
  EXPECT_TRUE(Parsed(two).gguf);
}

TEST(Gguf, CountsNearTheLimitOfTheirTypeAreRefused) {
  for (const uint64_t count : {uint64_t{1}, Gguf::kTensorsMax, kNear63, ~uint64_t{0} - 3}) {
    GgufBuilder tensors = Valid();
    tensors.extra_tensors = count;
    ExpectRefused(tensors);
    GgufBuilder metadata = Valid();
    metadata.extra_metadata = count;
    ExpectRefused(metadata);
  }
}

TEST(Gguf, LengthsPastTheEndAreRefused) {
  for (const uint64_t length : {uint64_t{1} << 20, kNear63, ~uint64_t{0}}) {
    GgufBuilder text = Valid();
    text.Raw("k", GgufType::kString, GgufBuilder::Bytes(length));
    ExpectRefused(text);
    for (const GgufType type : {GgufType::kU8, GgufType::kU64, GgufType::kString}) {
      GgufBuilder array = Valid();
      array.Array("k", type, length, "");
      ExpectRefused(array);
    }
  }
}

TEST(Gguf, DimensionsWhoseProductWrapsAreRefused) {
  const std::array<Dims, 6> cases = {
      {{kNear63 + 1, 2},
       {uint64_t{1} << 32, uint64_t{1} << 32},
       {uint64_t{1} << 62, 1},
       {4, ~uint64_t{0}},
       {uint64_t{1} << 16, uint64_t{1} << 16, uint64_t{1} << 16, uint64_t{1} << 16},
       {1, 1, 1, kNear63}}};
  for (const Dims& dims : cases) {
    GgufBuilder b = Valid();
    b.Tensor("x", dims, kF32, "");
    ExpectRefused(b);
  }
}

TEST(Gguf, ShapesThatCannotBeAreRefused) {
  const std::array<Dims, 5> cases = {{{}, {0}, {4, 0}, {1, 1, 1, 1, 1}, {32, 1, 0, 1}}};
  for (const Dims& dims : cases) {
    GgufBuilder b = Valid();
    b.Tensor("x", dims, kF32, std::string(128, 'x'));
    ExpectRefused(b);
  }
  GgufBuilder part_of_a_block = Valid();
  part_of_a_block.Tensor("x", Dims{33}, kQ8_0, std::string(68, 'x'));
  ExpectRefused(part_of_a_block);
}

TEST(Gguf, UnknownRemovedAndUnsupportedTypesAreRefused) {
  for (const uint32_t type : {2u, 4u, 12u, 31u, 1000u, ~0u}) {
    GgufBuilder b = Valid();
    b.Tensor("x", Dims{256}, type, std::string(1024, 'x'));
    ExpectRefused(b);
  }
  GgufBuilder value = Valid();
  value.Raw("k", static_cast<GgufType>(13), std::string(8, '\0'));
  ExpectRefused(value);
}

TEST(Gguf, TensorsOutsideMisalignedOrOverlappingAreRefused) {
  const uint64_t end = 96;  // of Valid()'s data
  for (const uint64_t offset : {uint64_t{0}, uint64_t{32}, uint64_t{1}, uint64_t{16}, end + 4, end,
                                kNear63 - 31, ~uint64_t{0} - 31, ~uint64_t{0} - 127}) {
    GgufBuilder b = Valid();
    b.TensorAt("x", Dims{4, 2}, kF32, offset);
    ExpectRefused(b);
  }
}

TEST(Gguf, AlignmentMustBeAPowerOfTwo) {
  for (const uint32_t alignment : {0u, 1u, 24u, 1u << 17, ~0u}) {
    GgufBuilder b = Valid();
    b.Uint("general.alignment", alignment);
    ExpectRefused(b);
  }
  GgufBuilder wide;
  wide.alignment = 64;
  wide.Uint("general.alignment", 64);
  wide.Tensor("x", Dims{1}, kF32, "1234");
  wide.Tensor("y", Dims{1}, kF32, "1234");
  EXPECT_TRUE(Parsed(wide).gguf);
}

TEST(Gguf, DuplicatesNestedArraysAndOddKeysAreRefused) {
  GgufBuilder key = Valid();
  key.Uint("eps", 1);
  ExpectRefused(key);
  GgufBuilder tensor = Valid();
  tensor.Tensor("a", Dims{1}, kF32, "1234");
  ExpectRefused(tensor);
  GgufBuilder nested = Valid();
  nested.Array("k", GgufType::kArray, 1, std::string(16, '\0'));
  ExpectRefused(nested);
  GgufBuilder boolean = Valid();
  boolean.Raw("k", GgufType::kBool, "\x02");
  ExpectRefused(boolean);
  for (const auto& name : {std::string(), std::string("caf\xc3\xa9"), std::string("a\0b", 3),
                           std::string("two words"), std::string(2000, 'k')}) {
    GgufBuilder odd = Valid();
    odd.Uint(name, 1);
    ExpectRefused(odd);
  }
}

TEST(Gguf, EveryTruncationIsAnError) {
  GgufBuilder b = Valid();
  b.Strings("words", std::vector<std::string>(500, "twelve bytes"));
  b.Tensor("big", Dims{4096}, kF32, std::string(16384, 'x'));
  const std::string file = b.Build();
  ASSERT_GT(file.size(), 6u * 4096);
  for (size_t size = 0; size < file.size(); size += 4096) {
    EXPECT_FALSE(Gguf::Parse(AsBytes(file).first(size))) << size;
  }
  for (size_t size = 0; size < Valid().Build().size() - 32; ++size) {  // the tail is padding
    const std::string cut = Valid().Build().substr(0, size);
    EXPECT_FALSE(Gguf::Parse(AsBytes(cut))) << size;
  }
}

class OnDisk : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(dir_); }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string Path(const char* name) const { return (dir_ / name).string(); }

  std::filesystem::path dir_ =
      std::filesystem::path(testing::TempDir()) / ("gguf_test." + std::to_string(::getpid()));
};

TEST_F(OnDisk, OpensARegularFile) {
  std::ofstream(Path("m.gguf"), std::ios::binary) << Valid().Build();
  const auto opened = GgufFile::Open(Path("m.gguf"));
  ASSERT_TRUE(opened) << opened.error().what;
  EXPECT_EQ(opened->gguf.tensors().size(), 2u);
}

TEST_F(OnDisk, RefusesWhatIsNoRegularFileWithoutBlocking) {
  EXPECT_EQ(GgufFile::Open(Path("absent")).error().code, Code::kNotFound);
  EXPECT_EQ(GgufFile::Open(dir_.string()).error().code, Code::kInvalidArgument);
  ASSERT_EQ(::mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(GgufFile::Open(Path("fifo")).error().code, Code::kInvalidArgument);
  std::ofstream(Path("empty")).flush();
  EXPECT_EQ(GgufFile::Open(Path("empty")).error().code, Code::kInvalidArgument);
}

TEST(Gguf, ReadsTheRealModel) {
  const auto opened = GgufFile::Open(HIDANE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (!opened && opened.error().code == Code::kNotFound) GTEST_SKIP() << "no model file";
  ASSERT_TRUE(opened) << opened.error().what;
  EXPECT_EQ(opened->gguf.tensors().size(), 272u);
  EXPECT_EQ(opened->gguf.Strings("tokenizer.ggml.tokens")->size(), 49152u);
}

}  // namespace
}  // namespace hidane::model
