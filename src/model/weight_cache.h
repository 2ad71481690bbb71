#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/mapped_file.h"
#include "model/panels.h"

namespace hidane::model {

/// A packed matrix (panels.h), wherever its bytes are.
struct PackedMatrix {
  PanelType type;
  uint32_t rows, cols;
  const std::byte* data;
};

/// A file of packed matrices in the order in which a model asks for them.
struct WeightCache {
  MappedFile file;
  std::vector<PackedMatrix> matrices;  ///< views into it

  /// kNotFound without the file; kInvalidArgument, naming what is wrong, for one that is foreign,
  /// of another version, cut short or changed: every count, offset and checksum is checked.
  /// Cost: reads the file once.
  static Result<WeightCache> Open(const std::string& path);
};

/// Writes such a file under another name, a matrix at a time, and renames it when it is whole.
/// What was added stays mapped at its address, shared with later readers, for the builder's life. A
/// builder that goes without having published leaves nothing behind.
class WeightCacheBuilder {
 public:
  /// kUnavailable if the file can't be made.
  static Result<std::unique_ptr<WeightCacheBuilder>> Make(const std::string& path);
  ~WeightCacheBuilder();
  WeightCacheBuilder(const WeightCacheBuilder&) = delete;
  WeightCacheBuilder& operator=(const WeightCacheBuilder&) = delete;

  /// Room for the next matrix, writable until published. kResourceExhausted: no disk; the file is
  /// given up, nothing will be published.
  Result<std::byte*> Add(PanelType type, uint32_t rows, uint32_t cols);

  /// kUnavailable if it can't be written or was given up.
  Status Publish();

 private:
  WeightCacheBuilder(std::string path, std::byte* reserved)
      : path_(std::move(path)), reserved_(reserved) {}
  Status Grow(uint64_t to);

  std::string path_, temporary_;
  int fd_ = -1;
  std::byte* reserved_;        ///< addresses
  std::byte* base_ = nullptr;  ///< the file's first byte, among them
  bool given_up_ = false;
  uint64_t mapped_ = 0, end_ = 0;  ///< of the file so far; end_: what is in use
  std::vector<PackedMatrix> matrices_;
};

/// `dir`/NAME where NAME says which model file, packing and operand type the cache is for: the
/// file's own name, and a digest of its size, time of change and first megabyte. kNotFound: no such
/// model file.
Result<std::string> WeightCachePath(const std::string& dir, const std::string& model_path,
                                    bool bf16);

}  // namespace hidane::model
