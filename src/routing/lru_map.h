#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <utility>

#include "routing/flat_map.h"

namespace hidane::routing {

/// A bounded map from 64-bit hashes that forgets the least recently touched. Iterates from the
/// most to the least recent, so results don't depend on hash order. O(1) per call.
template <class Value>
class LruMap {
 public:
  using Entry = std::pair<const uint64_t, Value>;

  explicit LruMap(size_t bound) : bound_(bound) {}

  Value* Find(uint64_t key) { return const_cast<Value*>(std::as_const(*this).Find(key)); }
  const Value* Find(uint64_t key) const {
    const auto at = where_.find(key);
    return at == where_.end() ? nullptr : &at->second->second;
  }

  /// Finds or makes the entry and makes it the most recent. Beyond the bound the oldest one is
  /// handed to `on_evict(Entry&)` first. The reference holds until the entry leaves.
  template <class OnEvict>
  Value& Touch(uint64_t key, OnEvict&& on_evict) {
    if (const auto at = where_.find(key); at != where_.end()) {
      entries_.splice(entries_.begin(), entries_, at->second);
      return at->second->second;
    }
    if (entries_.size() >= bound_ && !entries_.empty()) {
      on_evict(entries_.back());
      Erase(entries_.back().first);
    }
    entries_.emplace_front(key, Value{});
    MakeRoom(where_);
    where_.emplace(key, entries_.begin());
    return entries_.front().second;
  }
  Value& Touch(uint64_t key) {
    return Touch(key, [](Entry&) {});
  }

  void Erase(uint64_t key) {
    const auto at = where_.find(key);
    if (at == where_.end()) return;
    entries_.erase(at->second);
    where_.erase(at);
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Entry& oldest() { return entries_.back(); }  ///< REQUIRES: not empty
  const Entry& oldest() const { return entries_.back(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Entries = std::list<Entry>;
  size_t bound_;
  Entries entries_;
  boost::unordered_flat_map<uint64_t, typename Entries::iterator> where_;
};

}  // namespace hidane::routing
