#pragma once
#include <boost/unordered/unordered_flat_map.hpp>

namespace hidane::routing {

/// Call before an insertion into a map that also erases. Erasing from open addressing wears out
/// capacity; a map that stays near its bound would rehash every few insertions for ever. With
/// half as much room again it does so at most once per size / 2.
template <class Key, class Value>
void MakeRoom(boost::unordered_flat_map<Key, Value>& map) {
  if (map.size() >= map.max_load()) map.reserve(map.size() + map.size() / 2 + 16);
}

}  // namespace hidane::routing
