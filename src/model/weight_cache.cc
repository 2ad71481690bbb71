#include "model/weight_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/assert.h"
#include "base/hash.h"
#include "model/huge_pages.h"

namespace hidane::model {
namespace {

// Of the file's form and of the blocks in it. Raised by whoever changes either.
constexpr uint32_t kVersion = 1;
constexpr uint64_t kMagic = 0x5448'4749'4557'4448;  // "HDWEIGHT"
constexpr uint64_t kPage = 4096;
constexpr uint32_t kMatricesMax = 65536;
constexpr size_t kHugePage = size_t{2} << 20, kGrowBytes = 16 * kHugePage;
constexpr size_t kFileBytesMax = size_t{256} << 30, kReservedBytes = kFileBytesMax + kHugePage;

struct Header {
  uint64_t magic;
  uint32_t version, matrices;
  uint64_t table, table_hash;  ///< where the entries are, and their XXH3
};
struct Entry {
  uint32_t type, rows, cols, reserved;
  uint64_t offset, hash;  ///< page-aligned; XXH3 of the matrix
};

uint64_t PageEnd(uint64_t at) {
  return (at + kPage - 1) / kPage * kPage;
}

Error Broken(const std::string& path, std::string_view what) {
  return {Code::kInvalidArgument, fmt::format("weight cache {}: {}", path, what), {}};
}

Error SystemError(Code code, const std::string& path) {
  return {code, fmt::format("{}: {}", path, std::strerror(errno)), {}};
}

/// True if the entry lies inside `file` and its bytes are those that were written.
bool Valid(const Entry& e, std::span<const std::byte> file) {
  const auto type = static_cast<PanelType>(e.type);
  if (BlockBytes(type) == 0 || e.rows == 0 || e.cols == 0 || e.cols % kBlockInputs != 0)
    return false;
  const uint64_t bytes = PackedBytes(type, e.rows, e.cols);
  if (e.offset % kPage != 0 || e.offset > file.size() || bytes > file.size() - e.offset)
    return false;
  return Xxh3(file.data() + e.offset, bytes) == e.hash;
}

}  // namespace

Result<WeightCache> WeightCache::Open(const std::string& path) {
  HIDANE_TRY(MappedFile mapped, MappedFile::Open(path));
  const std::span<const std::byte> file = mapped.bytes();
  AdviseHugePages(const_cast<std::byte*>(file.data()), file.size());
  Header header;
  if (file.size() < sizeof header) return Fail(Broken(path, "shorter than its header"));
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != kMagic || header.version != kVersion)
    return Fail(Broken(path, "another form or version"));
  const uint64_t table_bytes = header.matrices * uint64_t{sizeof(Entry)};
  if (header.matrices > kMatricesMax || header.table > file.size() ||
      table_bytes > file.size() - header.table)
    return Fail(Broken(path, "its table lies outside"));
  const std::byte* const table = file.data() + header.table;
  if (Xxh3(table, table_bytes) != header.table_hash)
    return Fail(Broken(path, "its table has changed"));
  WeightCache cache{std::move(mapped), {}};
  for (uint32_t i = 0; i < header.matrices; ++i) {
    Entry e;
    std::memcpy(&e, table + i * sizeof e, sizeof e);
    if (!Valid(e, file)) return Fail(Broken(path, fmt::format("matrix {} has changed", i)));
    cache.matrices.push_back(
        {static_cast<PanelType>(e.type), e.rows, e.cols, file.data() + e.offset});
  }
  return cache;
}

Result<std::unique_ptr<WeightCacheBuilder>> WeightCacheBuilder::Make(const std::string& path) {
  void* const reserved = ::mmap(nullptr, kReservedBytes, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return Fail(SystemError(Code::kUnavailable, path));
  std::unique_ptr<WeightCacheBuilder> builder(
      new WeightCacheBuilder(path, static_cast<std::byte*>(reserved)));
  // Huge pages need address and offset to agree in their lower bits.
  const auto address = reinterpret_cast<uintptr_t>(reserved);
  builder->base_ = builder->reserved_ + (kHugePage - address % kHugePage) % kHugePage;
  std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  builder->fd_ = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (builder->fd_ < 0) return Fail(SystemError(Code::kUnavailable, temporary));
  builder->temporary_ = std::move(temporary);
  builder->end_ = kPage;  // the header's
  return builder;
}

WeightCacheBuilder::~WeightCacheBuilder() {
  ::munmap(reserved_, kReservedBytes);
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status WeightCacheBuilder::Grow(uint64_t to) {
  if (given_up_ || to > kFileBytesMax) return Fail(Code::kTooLarge, "given up");
  if (to <= mapped_) return {};
  given_up_ = true;  // unless all goes well
  const uint64_t bytes = (to - mapped_ + kGrowBytes - 1) / kGrowBytes * kGrowBytes;
  // Blocks are allocated now: writing to a mapping without any left would be a SIGBUS.
  const auto at = static_cast<off_t>(mapped_), size = static_cast<off_t>(bytes);
  if (const int error = ::posix_fallocate(fd_, at, size); error != 0) {
    errno = error;
    return Fail(SystemError(Code::kResourceExhausted, temporary_));
  }
  std::byte* const address = base_ + mapped_;
  constexpr int kFlags = MAP_SHARED | MAP_FIXED;
  if (::mmap(address, bytes, PROT_READ | PROT_WRITE, kFlags, fd_, at) == MAP_FAILED)
    return Fail(SystemError(Code::kResourceExhausted, temporary_));
  AdviseHugePages(address, bytes);
  mapped_ += bytes;
  given_up_ = false;
  return {};
}

Result<std::byte*> WeightCacheBuilder::Add(PanelType type, uint32_t rows, uint32_t cols) {
  const size_t bytes = PackedBytes(type, rows, cols);
  HIDANE_CHECK_OK(Grow(end_ + bytes));
  std::byte* const at = base_ + end_;
  matrices_.push_back({type, rows, cols, at});
  end_ = PageEnd(end_ + bytes);
  return at;
}

Status WeightCacheBuilder::Publish() {
  if (given_up_) return Fail(Code::kUnavailable, "given up");
  std::vector<Entry> table;
  uint64_t offset = kPage;
  for (const PackedMatrix& m : matrices_) {
    const size_t bytes = PackedBytes(m.type, m.rows, m.cols);
    table.push_back(
        {static_cast<uint32_t>(m.type), m.rows, m.cols, 0, offset, Xxh3(m.data, bytes)});
    offset = PageEnd(offset + bytes);
  }
  const size_t bytes = table.size() * sizeof(Entry);
  const Header header{kMagic, kVersion, static_cast<uint32_t>(table.size()), offset,
                      Xxh3(table.data(), bytes)};
  const bool written =
      ::ftruncate(fd_, static_cast<off_t>(offset + bytes)) == 0 &&
      ::pwrite(fd_, table.data(), bytes, static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(bytes) &&
      ::pwrite(fd_, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
  if (!written || ::rename(temporary_.c_str(), path_.c_str()) != 0)
    return Fail(SystemError(Code::kUnavailable, path_));
  temporary_.clear();
  // The same addresses and bytes once more, as a reader maps them: read-only, in one piece that
  // huge pages fit into.
  HIDANE_ASSERT(::mmap(base_, end_, PROT_READ, MAP_SHARED | MAP_FIXED, fd_, 0) != MAP_FAILED);
  AdviseHugePages(base_, end_);
  return {};
}

Result<std::string> WeightCachePath(const std::string& dir, const std::string& model_path,
                                    bool bf16) {
  constexpr size_t kHeadBytes = 1 << 20;
  HIDANE_TRY(const MappedFile model, MappedFile::Open(model_path));
  struct stat status{};
  if (::stat(model_path.c_str(), &status) != 0)
    return Fail(SystemError(Code::kNotFound, model_path));
  const int64_t identity[] = {kVersion, bf16, static_cast<int64_t>(model.bytes().size()),
                              status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  Sha256 sha;
  sha.Update(identity, sizeof identity);
  sha.Update(model.bytes().data(), std::min(kHeadBytes, model.bytes().size()));
  const Sha256Digest digest = sha.Finish();
  uint64_t name;
  std::memcpy(&name, digest.data(), sizeof name);
  const std::filesystem::path file = std::filesystem::path(model_path).filename();
  return fmt::format("{}/{}.{:016x}.weights", dir, file.string(), name);
}

}  // namespace hidane::model
