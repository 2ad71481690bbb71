#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "model/kernels.h"
#include "model/panels.h"
#include "model/scratch.h"

namespace hidane::model {

/// A packed matrix (panels.h) and what it is made of.
struct PackedMatrix {
  PanelType type;
  uint32_t rows, cols;
  const std::byte* data;
};

/// Keeps packed matrices for as long as it lives.
class WeightStore {
 public:
  PackedMatrix Pack(const WeightView& view, bool bf16) {
    const PanelType type = PackedType(view.type, bf16);
    std::byte* data = owned_.emplace_back().Get<std::byte>(PackedBytes(type, view.rows, view.cols));
    PackPanels(view, type, data);
    return {type, view.rows, view.cols, data};
  }

 private:
  std::vector<Scratch> owned_;
};

}  // namespace hidane::model
