#include "model/rope_table.h"

#include <cmath>

namespace hidane::model {

std::vector<float> MakeRopeTable(uint32_t positions, uint32_t head_dim, uint32_t rope_dims,
                                 float theta, std::span<const float> factors) {
  std::vector<double> frequencies(head_dim / 2, 0.0);
  for (uint32_t i = 0; i < rope_dims / 2; ++i) {
    frequencies[i] = std::pow(double{theta}, -2.0 * i / rope_dims);
    if (!factors.empty()) frequencies[i] /= factors[i];
  }
  std::vector<float> table(size_t{positions} * head_dim);
  float* to = table.data();
  for (uint32_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      *to++ = static_cast<float>(std::cos(position * frequency));
      *to++ = static_cast<float>(std::sin(position * frequency));
    }
  }
  return table;
}

}  // namespace hidane::model
