// The layout of groups, compiled once for all reductions.
#include "kernels/blocks/group_layout.hpp"

namespace dmlops::DMLOPS_TARGET {

std::int64_t ElementLoops::count() const {
  std::int64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= sizes[d];
  return product;
}

void ElementLoops::list_offsets(int dimensions, std::int64_t first, std::int64_t count,
                                std::int64_t* offsets) const {
  if (dimensions == 0) {
    offsets[0] = 0;
    return;
  }
  const int inner = dimensions - 1;
  const std::int64_t stride = strides[inner];
  std::int64_t index[kMaxRank], base = 0;  // of the first index of the inner dimension
  for (int d = inner; d >= 0; --d) {
    index[d] = first % sizes[d];
    first /= sizes[d];
    if (d < inner) base += index[d] * strides[d];
  }
  for (std::int64_t i = index[inner], listed = 0; listed < count; i = 0) {
    const std::int64_t here = min(sizes[inner] - i, count - listed);
    for (std::int64_t k = 0; k < here; ++k) offsets[listed + k] = base + (i + k) * stride;
    listed += here;
    for (int d = inner - 1; d >= 0; --d) {
      base += strides[d];
      if (++index[d] < sizes[d]) break;
      base -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
}

bool has_no_strides(const ReductionNest& nest, int operand) {
  for (int d = 0; d < nest.rank; ++d) {
    if (nest.strides[operand][d] != 0) return false;
  }
  return true;
}

bool fills_rows(const Reduction& groups, const ElementLoops& in, const ElementLoops& out,
                std::int64_t along_rows) {
  const std::int64_t count = groups.end - groups.first;
  // True if elements of a group share cache lines in both operands, and fill the lanes of a sum.
  constexpr std::int64_t kShared = kLineBytes / 4;
  const bool contiguous =
      abs(in.step()) <= kShared && abs(out.step()) <= kShared && in.run() >= kSumLanes;
  // Few groups leave most columns empty; the overhead of a group along a row equals that of 8
  // elements per column.
  const bool few = count <= 8 && 8 * count <= in.count();
  return few || (contiguous && in.count() >= along_rows);
}

}  // namespace dmlops::DMLOPS_TARGET
