#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace hidane {

/// XXH3-64: for routing hints only; a collision costs a wrong guess, never a wrong answer.
uint64_t Xxh3(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t Xxh3(std::string_view bytes, uint64_t seed = 0) {
  return Xxh3(bytes.data(), bytes.size(), seed);
}

using Sha256Digest = std::array<uint8_t, 32>;

/// Incremental SHA-256, for KV block identity: one object per thread, reused, so that the
/// algorithm is fetched once. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(const void* data, size_t size);
  void Update(std::string_view bytes) { Update(bytes.data(), bytes.size()); }
  Sha256Digest Finish();  ///< and starts anew

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hidane
