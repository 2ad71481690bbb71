#include "base/hash.h"

#include <openssl/evp.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/assert.h"

namespace hidane {

uint64_t Xxh3(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

struct Sha256::Impl {
  EVP_MD* md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  Impl() { HIDANE_ASSERT(md != nullptr && ctx != nullptr); }
  ~Impl() {
    EVP_MD_CTX_free(ctx);
    EVP_MD_free(md);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  void Start() { HIDANE_ASSERT(EVP_DigestInit_ex2(ctx, md, nullptr) == 1); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  impl_->Start();
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(const void* data, size_t size) {
  HIDANE_ASSERT(EVP_DigestUpdate(impl_->ctx, data, size) == 1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  HIDANE_ASSERT(EVP_DigestFinal_ex(impl_->ctx, digest.data(), nullptr) == 1);
  impl_->Start();
  return digest;
}

}  // namespace hidane
