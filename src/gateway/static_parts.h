#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "prompt/body_reader.h"
#include "prompt/identity.h"
#include "routing/lru_map.h"

namespace hidane::gateway {

/// The body of a request that uses a prompt's static part and computes next to nothing: the
/// client's, with the system messages that it begins with, one short message of a user and one
/// token of answer. What decides how the prompt is laid out stays as it came. nullopt: not
/// of a form with messages, or no JSON.
std::optional<std::string> RefreshBody(prompt::Api api, std::string_view body);

/// A request of the gateway's own that keeps a prefix cached.
struct StaticPart {
  std::string target;  ///< of the request line
  std::string body;
  prompt::Identity identity;  ///< of the prefix alone
};

/// The static parts of prompts that were answered of late, by K1, so that they can be sent again:
/// the one place where the gateway keeps prompt text longer than a request lives. Bounded by bytes;
/// the least recently put leaves first. Thread-safe. O(1) beside copying.
class StaticParts {
 public:
  explicit StaticParts(size_t bytes_max) : bytes_max_(bytes_max) {}

  bool Knows(uint64_t k1) const;
  /// A part larger than the bound is dropped.
  void Put(uint64_t k1, StaticPart part);
  std::shared_ptr<const StaticPart> Find(uint64_t k1) const;  ///< nullptr: not known

 private:
  mutable std::mutex mutex_;
  routing::LruMap<std::shared_ptr<const StaticPart>> parts_{SIZE_MAX};  // bounded by bytes
  size_t bytes_ = 0;
  size_t bytes_max_;
};

}  // namespace hidane::gateway
