#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace hidane::model {

/// A regular file mapped read-only, shared with every other process that maps it. Move-only; the
/// bytes stay at their address. Replacing the file by rename is safe while it is mapped, truncating
/// it in place is not (as with any mapping).
class MappedFile {
 public:
  /// kNotFound if it can't be opened; kInvalidArgument if it is empty or not a regular file
  /// (directory, FIFO, device: never blocks on them); kResourceExhausted if it can't be mapped.
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

}  // namespace hidane::model
