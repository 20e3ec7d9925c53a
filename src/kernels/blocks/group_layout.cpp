// The layout of groups, compiled once for all reductions.
#include "kernels/blocks/group_layout.hpp"

namespace dmlops::DMLOPS_TARGET {

std::int64_t ElementLoops::count() const {
  std::int64_t product = 1;
  for (int d = 0; d < rank; ++d) product *= sizes[d];
  return product;
}

ElementLoops ElementLoops::merged(std::int64_t* merged_sizes, std::int64_t* merged_strides) const {
  int last = -1;
  for (int d = 0; d < rank; ++d) {
    if (last >= 0 && merged_strides[last] == strides[d] * sizes[d]) {
      merged_sizes[last] *= sizes[d];
    } else {
      merged_sizes[++last] = sizes[d];
    }
    merged_strides[last] = strides[d];
  }
  return {last + 1, merged_sizes, merged_strides};
}

std::int64_t ElementLoops::offset(std::int64_t i) const {
  std::int64_t offset = 0;
  for (int d = rank - 1; d > 0; --d) {
    offset += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  return offset + i * strides[0];
}

void ElementLoops::list_offsets(int dimensions, std::int64_t first, std::int64_t count,
                                std::int64_t* offsets) const {
  if (dimensions == 0) {
    offsets[0] = 0;
    return;
  }
  const ElementLoops loops = {dimensions, sizes, strides};
  loops.for_each_run(first, first + count,
                     [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
                       for (std::int64_t k = 0; k < length; ++k)
                         offsets[i + k] = offset + k * loops.step();
                     });
}

bool has_no_strides(const ReductionNest& nest, int operand) {
  for (int d = 0; d < nest.rank; ++d) {
    if (nest.strides[operand][d] != 0) return false;
  }
  return true;
}

std::int64_t nearest_elements(const ElementLoops& loops) {
  std::int64_t nearest = INT64_MAX;
  for (int d = 0; d < loops.rank; ++d) {
    if (loops.strides[d] != 0) nearest = min(nearest, abs(loops.strides[d]));
  }
  return nearest;
}

bool sort_elements(const Reduction& groups, std::int64_t element_size, ReductionNest& sorted) {
  const ReductionNest& elements = groups.elements;
  int order[kMaxRank];  // the outermost dimension first
  const auto stride = [&](int i) { return abs(elements.strides[1][order[i]]); };
  for (int d = 0; d < elements.rank; ++d) {
    order[d] = d;
    for (int i = d; i > 0 && stride(i) > stride(i - 1); --i) {
      const int outer = order[i - 1];
      order[i - 1] = order[i];
      order[i] = outer;
    }
  }
  const int innermost = order[elements.rank - 1];
  if (innermost == elements.rank - 1) return false;
  for (int o = 0; o < kFirstGroupOperand; ++o) {
    if (groups.data[o] != nullptr && !has_no_strides(elements, o) &&
        elements.strides[o][innermost] != element_size)
      return false;
  }
  sorted.rank = 0;
  for (int i = 0; i < elements.rank; ++i) {
    const int d = order[i], outer = sorted.rank - 1;
    bool merges = outer >= 0;
    for (int o = 0; merges && o < kReductionOperands; ++o)
      merges = sorted.strides[o][outer] == elements.strides[o][d] * elements.sizes[d];
    const int target = merges ? outer : sorted.rank++;
    sorted.sizes[target] = elements.sizes[d] * (merges ? sorted.sizes[outer] : 1);
    for (int o = 0; o < kReductionOperands; ++o) sorted.strides[o][target] = elements.strides[o][d];
  }
  return true;
}

bool leave_lanes_empty(const Reduction& groups) {
  const std::int64_t elements = element_loops(groups, 1).count(), count = groups.end - groups.first;
  // The overhead of a group along a row equals that of 8 elements per column.
  if (count <= 8 && 8 * count <= elements) return true;
  constexpr std::int64_t kNarrowAlongRows = 96;
  const std::int64_t columns = groups.kept.rank == 0 ? 1 : groups.kept.sizes[0];
  return columns < kFloatLanes && elements >= max(kNarrowAlongRows, 2 * columns * columns);
}

}  // namespace dmlops::DMLOPS_TARGET
