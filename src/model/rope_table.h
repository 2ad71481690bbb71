#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace hidane::model {

/// The rotation of every pair at every position, [positions][head_dim / 2][2] = (cos, sin),
/// computed in double so that position 100,000 is as exact as position 1. Pair i turns by
///     position * theta^(-2i / rope_dims) / factors[i]
/// for i < rope_dims / 2 and not at all beyond. `factors` may be empty (= all 1).
/// REQUIRES: even dimensions, rope_dims <= head_dim, factors empty or of rope_dims / 2.
/// Source: Su et al. 2021 (RoPE); the pairs are neighbours, as GGUF's llama files store Q and K.
std::vector<float> MakeRopeTable(uint32_t positions, uint32_t head_dim, uint32_t rope_dims,
                                 float theta, std::span<const float> factors);

}  // namespace hidane::model
