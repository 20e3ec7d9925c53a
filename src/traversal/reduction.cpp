// Builds the loop nests of reductions.
#include "traversal/reduction.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/insertion_sort.hpp"
#include "core/views.hpp"
#include "traversal/dimension.hpp"

namespace dmlops {
namespace {

using ReducedDimension = Dimension<kReductionOperands>;

// True if the operand has different elements in a group.
bool varies_in_groups(const ConstTensorView* operand, unsigned int reduced) {
  for (std::size_t d = 0; operand != nullptr && d < rank_of(*operand); ++d) {
    if (has_bit(reduced, d) && operand->sizes[d] > 1 && operand->strides[d] != 0) return true;
  }
  return false;
}

// True if most of the operands that vary in groups go backwards along a dimension; of as many,
// those that the input belongs to, which is read more than once.
bool goes_backwards(const ReducedDimension& dimension, const ReductionOperands& operands,
                    unsigned int reduced) {
  int balance = 0;
  for (int k = 0; k < kFirstGroupOperand; ++k) {
    const std::int64_t stride = dimension.strides[k];
    const int weight = k == 1 ? 3 : 2;
    if (stride != 0 && varies_in_groups(operands[k], reduced))
      balance += stride > 0 ? weight : -weight;
  }
  return balance < 0;
}

// Sorts the dimensions that count groups into the order that uses whole cache lines: that of the
// input, which is read more than once, unless the elements of a group, `element_step` bytes apart,
// share cache lines; then that of the output. A broadcast dimension is outermost, since it touches
// no further cache line.
void sort_groups(ReducedDimension* dimensions, int rank, std::int64_t element_step) {
  const bool by_output = std::llabs(element_step) <= kNearBytes;
  const auto distance = [by_output](const ReducedDimension& d) {
    if (by_output) return std::llabs(d.strides[0]);
    return d.strides[1] == 0 ? INT64_MAX : std::llabs(d.strides[1]);
  };
  insertion_sort(dimensions, rank, [&](const ReducedDimension& a, const ReducedDimension& b) {
    return distance(a) < distance(b);
  });
}

// Returns the number of elements of each column that groups are split into, or 0 if they are not
// split. Their outermost dimension must be contiguous in the operands that vary. Blocks of sums
// that begin in one column and end in the next one are read twice, which single groups gain from
// only if columns are long. Columns shorter than a block are added up along rows: then only results
// gain, and only those of groups of few columns.
std::int64_t split_rows(const PlannedReduction& planned, std::int64_t element_size) {
  constexpr std::int64_t kFewest = 16, kFewestOfOne = 32, kMaxOfShort = 128;  // columns
  constexpr std::int64_t kShortest = 128, kShortestOfOne = 4 * kSumBlock;     // rows
  const ReductionNest &kept = planned.kept, &nest = planned.elements;
  for (int o = 0; o < kFirstGroupOperand; ++o) {
    const std::int64_t* const strides = nest.strides[o];
    const bool varies = std::any_of(strides, strides + nest.rank, [](auto s) { return s != 0; });
    if (varies ? strides[0] != element_size : o < 2) return 0;
  }
  std::int64_t rows = 1;
  for (int d = 1; d < nest.rank; ++d) rows *= nest.sizes[d];
  std::int64_t columns = nest.sizes[0], shortest = kShortestOfOne, fewest = kFewestOfOne;
  if (kept.rank > 0 && kept.strides[1][0] == columns * element_size) {
    shortest = columns <= kMaxOfShort ? kShortest : kSumBlock;
    fewest = kFewest;
    columns *= kept.sizes[0];
  }
  return rows >= shortest && columns >= fewest ? rows : 0;
}

}  // namespace

PlannedReduction::PlannedReduction(const ReductionOperands& operands, unsigned int reduced) {
  const ConstTensorView& input = *operands[1];
  for (int k = 0; k < kReductionOperands; ++k) {
    if (operands[k] != nullptr) data[k] = data_of(*operands[k]);
  }
  ReducedDimension inner[kMaxRank], outer[kMaxRank], sorted[kMaxRank];
  int sorted_rank = 0;
  for (std::size_t axis = rank_of(input); axis-- > 0;) {
    if (input.sizes[axis] == 1) continue;
    ReducedDimension dimension = {input.sizes[axis], {}};
    for (int k = 0; k < kReductionOperands; ++k) {
      const ConstTensorView* const operand = operands[k];
      dimension.strides[k] =
          operand == nullptr || operand->sizes[axis] == 1 ? 0 : operand->strides[axis];
    }
    if (has_bit(reduced, axis)) {
      append(inner, elements.rank, dimension);
      continue;
    }
    const bool reversed = goes_backwards(dimension, operands, reduced);
    for (int k = 0; reversed && k < kReductionOperands; ++k) {
      offsets[k] += (dimension.size - 1) * dimension.strides[k];
      dimension.strides[k] = -dimension.strides[k];
    }
    sorted[sorted_rank++] = dimension;
  }
  if (elements.rank == 0) {
    const std::int64_t size = element_bytes(input.type);
    inner[elements.rank++] = {1, {size, size}};
  }
  sort_groups(sorted, sorted_rank, inner[0].strides[1]);
  for (int d = 0; d < sorted_rank; ++d) append(outer, kept.rank, sorted[d]);
  for (int d = 0; d < elements.rank; ++d) set_dimension(elements, d, inner[elements.rank - 1 - d]);
  for (int d = 0; d < kept.rank; ++d) {
    set_dimension(kept, d, outer[d]);
    groups *= outer[d].size;
  }
  if (elements.rank > 1) split = split_rows(*this, element_bytes(input.type));
}

}  // namespace dmlops
