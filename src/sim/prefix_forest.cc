#include "sim/prefix_forest.h"

namespace hidane::sim {
namespace {

/// A request's blocks, the answer's after the prompt's.
struct Blocks {
  const Request& request;

  size_t size() const { return request.prompt.chain.size() + request.answer_chain.size(); }
  uint64_t hash(size_t i) const {
    const size_t prompt = request.prompt.chain.size();
    return i < prompt ? request.prompt.chain[i] : request.answer_chain[i - prompt];
  }
  uint32_t end(size_t i) const {
    const size_t prompt = request.prompt.ends.size();
    return i < prompt ? request.prompt.ends[i] : request.answer_ends[i - prompt];
  }
};

}  // namespace

PrefixForest::Path PrefixForest::Add(const Request& request) {
  const Blocks blocks{request};
  size_t known = 0;  // a block's hash stands for all before it, so known ones are a prefix
  for (size_t end = blocks.size(); known < end;) {
    const size_t middle = known + (end - known) / 2;
    if (blocks_.contains(blocks.hash(middle))) {
      known = middle + 1;
    } else {
      end = middle;
    }
  }
  Place place = known == 0 ? Place{} : blocks_.find(blocks.hash(known - 1))->second;
  Path path;
  path.known = std::min(place.depth, request.prompt.bytes());
  if (known < blocks.size()) {
    parents_.push_back(place);
    place.run = static_cast<uint32_t>(parents_.size() - 1);
  }
  for (size_t i = known; i < blocks.size(); ++i) {
    place.depth = blocks.end(i);
    blocks_.emplace(blocks.hash(i), place);
  }
  path.answer_end = place;
  const size_t prompt = request.prompt.size();
  path.prompt_end = prompt == 0 ? Place{} : blocks_.find(request.prompt.chain.back())->second;
  return path;
}

}  // namespace hidane::sim
