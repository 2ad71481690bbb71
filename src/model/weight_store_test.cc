#include "model/weight_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "model/gguf.h"

namespace hidane::model {
namespace {

namespace fs = std::filesystem;

/// A directory with something that stands for a model file, and two matrices.
class WeightStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    log::SetLevel(log::Level::kOff);
    dir_ = testing::TempDir() + "weight_store_test." + std::to_string(::getpid());
    fs::create_directories(dir_);
    std::ofstream(model()) << "a model";
    for (size_t i = 0; i < q_.size(); ++i) q_[i] = static_cast<std::byte>(i * 31 % 251);
    for (size_t i = 0; i < f_.size(); ++i) f_[i] = static_cast<float>(i) / 7;
  }
  void TearDown() override {
    fs::permissions(dir_, fs::perms::owner_all);
    fs::remove_all(dir_);
    log::SetLevel(log::Level::kInfo);
  }

  std::string model() const { return dir_ + "/model.gguf"; }
  std::string cache() const { return dir_ + "/cache"; }
  std::string file() const { return WeightCachePath(cache(), model(), true).value(); }

  /// Packs both matrices by `store` and compares them with packing without a cache.
  void PackAndCompare(WeightStore& store) {
    WeightStore plain;
    for (const WeightView& view : views_) {
      const PackedMatrix got = store.Pack(view, true), wanted = plain.Pack(view, true);
      ASSERT_EQ(got.type, wanted.type);
      const size_t bytes = PackedBytes(got.type, view.rows, view.cols);
      ASSERT_EQ(0, std::memcmp(got.data, wanted.data, bytes));
    }
    store.Finish();
  }
  void Build() {
    WeightStore store(cache(), model(), true);
    ASSERT_FALSE(store.reads_cache());
    PackAndCompare(store);
  }
  size_t FilesInCache() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(cache()), fs::directory_iterator()));
  }

  std::string dir_;
  std::vector<std::byte> q_ = std::vector<std::byte>(20 * 2 * 20);  // Q4_1, 20 x 64
  std::vector<float> f_ = std::vector<float>(16 * 32);
  const WeightView views_[2] = {
      {TensorType::kQ4_1, q_.data(), 20, 64},
      {TensorType::kF32, reinterpret_cast<const std::byte*>(f_.data()), 16, 32}};
};

TEST_F(WeightStoreTest, TheSecondProcessReadsWhatTheFirstBuilt) {
  Build();
  WeightStore second(cache(), model(), true);
  EXPECT_TRUE(second.reads_cache());
  PackAndCompare(second);
}

TEST_F(WeightStoreTest, TheBuilderKeepsItsMatricesAfterPublishing) {
  WeightStore store(cache(), model(), true);
  const PackedMatrix m = store.Pack(views_[0], true);
  store.Finish();
  WeightStore plain;
  EXPECT_EQ(0, std::memcmp(m.data, plain.Pack(views_[0], true).data,
                           PackedBytes(m.type, m.rows, m.cols)));
}

TEST_F(WeightStoreTest, AnotherModelOrOperandTypeIsAnotherFile) {
  const std::string before = file();
  EXPECT_NE(before, WeightCachePath(cache(), model(), false).value());
  std::ofstream(model()) << "another model";
  EXPECT_NE(before, file());
}

TEST_F(WeightStoreTest, AnyChangedByteOfContentIsNoticed) {
  Build();
  const auto size = static_cast<long>(fs::file_size(file()));
  WeightStore plain;
  const long last = 4096 + 2 * 4096;  // header, two matrices of a page; then the table
  for (const long at :
       {0L, 8L, 12L, 16L, 24L, 4096L, 4096L + 700, 8192L + 5, last, last + 8, size - 1}) {
    std::fstream bytes(file(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(at);
    const char old = static_cast<char>(bytes.get());
    bytes.seekp(at);
    bytes.put(static_cast<char>(old ^ 0x40));
    bytes.flush();
    EXPECT_EQ(WeightCache::Open(file()).error().code, Code::kInvalidArgument) << "byte " << at;
    bytes.seekp(at);
    bytes.put(old);
  }
  EXPECT_TRUE(WeightCache::Open(file()).has_value());
}

TEST_F(WeightStoreTest, ACutFileIsNoticedAtAnyLength) {
  Build();
  for (const uintmax_t size : {1u, 39u, 4096u, 4100u, 8192u, 12288u, 12300u}) {
    fs::resize_file(file(), size);
    EXPECT_EQ(WeightCache::Open(file()).error().code, Code::kInvalidArgument) << size;
  }
}

TEST_F(WeightStoreTest, ABrokenCacheIsBuiltAnew) {
  Build();
  fs::resize_file(file(), 5000);
  Build();
  EXPECT_TRUE(WeightStore(cache(), model(), true).reads_cache());
}

TEST_F(WeightStoreTest, AnAbandonedBuildLeavesNoFile) {
  {
    WeightStore store(cache(), model(), true);
    store.Pack(views_[0], true);
  }
  EXPECT_EQ(FilesInCache(), 1u) << "the lock file only";
}

TEST_F(WeightStoreTest, WithoutAWritableDirectoryItUsesItsOwnMemory) {
  std::ofstream(cache()) << "a file where the directory should be";
  WeightStore store(cache(), model(), true);
  PackAndCompare(store);
  EXPECT_FALSE(store.reads_cache());
}

TEST_F(WeightStoreTest, AMatrixThatIsNotTheCachedOneIsPacked) {
  Build();
  WeightStore store(cache(), model(), true);
  const PackedMatrix m = store.Pack(views_[1], true);  // the first in the file is another
  WeightStore plain;
  EXPECT_EQ(0, std::memcmp(m.data, plain.Pack(views_[1], true).data,
                           PackedBytes(m.type, m.rows, m.cols)));
}

}  // namespace
}  // namespace hidane::model
