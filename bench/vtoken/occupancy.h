#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hidane::bench {

/// How a policy's choice lies in the stream of tokens.
enum class Shape : uint8_t {
  kIid,        ///< any token, independently
  kClustered,  ///< runs of live and of dead tokens, the dead ones kDeadRun long on average
  kBimodal,    ///< stretches of kStretch tokens: kHot of their tokens live, or kCold of them
  kStrided,    ///< evenly spread: no block dies by itself
};
inline constexpr std::array kShapes{Shape::kIid, Shape::kClustered, Shape::kBimodal,
                                    Shape::kStrided};
inline constexpr double kDeadRun = 256, kHot = 0.95, kCold = 0.05;
inline constexpr uint32_t kStretch = 128;  // a multiple of every block size measured

std::string_view NameOf(Shape shape);

/// One byte per token, 1 = stays: the recorded victims of one run, replayed to every mechanism.
/// Same seed, same map. `keep` is met exactly but for kClustered, where it is the expectation.
std::vector<uint8_t> MakeLiveMap(Shape shape, uint32_t tokens, double keep, uint64_t seed);

/// Expected share of blocks that keep at least one token, so that Naive-Evict still holds them:
///   iid        1 - (1-keep)^B
///   clustered  1 - (1-keep) (1 - 1/kDeadRun)^(B-1)
///   bimodal    the first, at kHot and kCold, weighed by how many stretches are hot
///   strided    1, as long as keep * B >= 1
double NaiveShare(Shape shape, double keep, uint32_t block_size);

/// Expected reduction of blocks against Naive-Evict by a compactor: 1 - keep / NaiveShare.
double Reduction(Shape shape, double keep, uint32_t block_size);

/// Expected moves of the best compaction, its last block free: live tokens less what the fullest
/// keep-share of the blocks holds, their occupancies binomial (bimodal: a mixture of two; strided:
/// all equal). < 0 for kClustered, which has no short formula.
double ExpectedMoves(Shape shape, double keep, uint32_t block_size, uint32_t tokens);

}  // namespace hidane::bench
