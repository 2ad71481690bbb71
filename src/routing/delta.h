#pragma once
#include <compare>
#include <cstdint>

namespace hidane::routing {

/// When and by whom a shared entry was written. The greater one wins: the higher epoch, ties by
/// replica. Epochs are Lamport clocks: a replica writes above everything that it has seen.
struct Stamp {
  uint64_t epoch = 0;    ///< 0: never written
  uint32_t replica = 0;  ///< the gateway that wrote
  friend auto operator<=>(const Stamp&, const Stamp&) = default;
};

/// A change of home, or a use of one, as gateways tell each other: a plain value of at most 64
/// bytes. Loads stay local; a worker is named by its stable key, not by a local id.
struct Delta {
  enum class Kind : uint8_t {
    kPlace,         ///< the first home of prefix `key` is `worker`, and no longer the one before
    kAddHome,       ///< `key` lives at `worker` too
    kDropHome,      ///< and no longer does
    kConversation,  ///< the conversation `key` (of prefix `k1`) lives at `worker` now
    kUse            ///< a request of prefix `key` went to `worker`; what is behind it comes once
  };
  uint64_t pool = 0;    ///< hash of the model that the pool serves
  uint64_t key = 0;     ///< K1, or K2 for kConversation
  uint64_t k1 = 0;      ///< kConversation: its prefix
  uint64_t worker = 0;  ///< hash of the worker's name
  Stamp stamp;
  /// Size as the sender estimates it. kConversation: 0 when no turn of it is expected for now;
  /// kUse: of the prompt behind the prefix.
  uint32_t tokens = 0;
  Kind kind = Kind::kPlace;
  friend bool operator==(const Delta&, const Delta&) = default;
};
static_assert(sizeof(Delta) <= 64);

}  // namespace hidane::routing
