// Dimensions of a loop nest under construction.
#pragma once

#include <cstdint>

namespace dmlops {

template <int kOperands>
struct Dimension {
  std::int64_t size;
  std::int64_t strides[kOperands];
};

// Adds a dimension outside of the others; one that continues the last of them is merged with it.
template <int kOperands>
void append(Dimension<kOperands>* dimensions, int& rank, const Dimension<kOperands>& added,
            int operands = kOperands) {
  const auto continues = [&](const Dimension<kOperands>& inner) {
    for (int k = 0; k < operands; ++k) {
      if (added.strides[k] != inner.strides[k] * inner.size) return false;
    }
    return true;
  };
  if (rank > 0 && continues(dimensions[rank - 1])) {
    dimensions[rank - 1].size *= added.size;
  } else {
    dimensions[rank++] = added;
  }
}

// Sets dimension d of a nest.
template <class AnyNest, int kOperands>
void set_dimension(AnyNest& nest, int d, const Dimension<kOperands>& dimension,
                   int operands = kOperands) {
  nest.sizes[d] = dimension.size;
  for (int k = 0; k < operands; ++k) nest.strides[k][d] = dimension.strides[k];
}

}  // namespace dmlops
