// Decides along which dimension rows lie, and which rows are extended over further dimensions.
#include "traversal/shortest_row.hpp"

#include <algorithm>
#include <cstdlib>

#include "traversal/policy.hpp"

namespace dmlops {

bool has_constant_parameters(const Nest& nest, int d) {
  for (int k = 2; k < nest.operands; ++k) {
    if (nest.strides[k][d] != 0) return false;
  }
  return true;
}

namespace {

// Returns the size of the shortest row that is not extended, in bytes: the traversal of a row costs
// as much as the packing of a few runs.
std::int64_t shortest_row_of_one_input(const Nest& nest) {
  const std::int64_t size = nest.element_size, step = nest.strides[1][0];
  if (step == size && nest.strides[0][0] == size) return 64;
  // Extended rows compute broadcast results more than once. This pays off if the rows repeat, since
  // they are computed once for all.
  if (step == 0 && nest.rank > 1) {
    constexpr std::int64_t kFewRuns = 4;
    for (int d = 2; d < nest.rank && nest.sizes[1] >= kFewRuns; ++d) {
      if (nest.strides[1][d] == 0 && nest.sizes[d] >= kFewRows) return 512;
    }
    const bool contiguous = nest.strides[0][1] == nest.sizes[0] * size;
    return nest.sizes[1] < 16 ? 64 : contiguous ? 0 : 32;
  }
  return std::llabs(step) <= 4 * size ? 128 : 256;
}

// Returns the shortest row that operators of two inputs do not extend, in elements. Rows are
// extended if the output's are contiguous, and each input's are contiguous too or cheap to pack.
std::int64_t shortest_row_of_two_inputs(const Nest& nest, std::int64_t table) {
  const std::int64_t size = nest.element_size, length = nest.sizes[0];
  const auto is_contiguous = [&nest, size](int k) {
    return nest.strides[k][0] == size && nest.strides[k][1] == size * nest.sizes[0];
  };
  std::int64_t shortest = 16;
  if (nest.rank == 1 || !is_contiguous(0)) return shortest;
  // Packed once for several longer rows.
  const auto repeats = [&](int k) {
    if (nest.strides[k][1] == 0 && nest.sizes[1] * length >= 3 * table) return true;
    for (int d = 2; d < nest.rank; ++d) {
      if (nest.strides[k][d] == 0 && nest.sizes[d] >= 4) return true;
    }
    return false;
  };
  // Vectors extend into the next row if one input is constant along rows and the other contiguous,
  // or if all rows have the same row of the second one.
  for (int k = 1; k < nest.operands; ++k) {
    if (nest.strides[k][0] == 0 && is_contiguous(3 - k)) return kShortestAcross / size;
  }
  const bool few = length * nest.sizes[1] <= 192;
  for (int k = 1; k < nest.operands; ++k) {
    if (is_contiguous(k)) continue;
    if (repeats(k)) {
      const bool extends =
          k == 2 && nest.strides[2][0] == size && nest.strides[2][1] == 0 && is_contiguous(1);
      shortest = std::max<std::int64_t>(shortest, extends ? kShortestAcross / size : 256);
    } else if (nest.strides[k][0] == 0) {
      return few ? 128 : kLineBytes / size;  // each run is filled by a store
    } else {
      return few ? 128 : 16;
    }
  }
  return shortest;
}

// Returns the number of rows of a shard that share the parameters of a row over several dimensions.
std::int64_t rows_that_share(const Nest& nest) {
  std::int64_t rows = 1;
  for (int d = 1; d < nest.rank; ++d) {
    if (has_constant_parameters(nest, d)) rows = std::max(rows, nest.sizes[d]);
  }
  return rows / shard_count(nest.bytes_per_element * element_count(nest));
}

// Returns the shortest row that operators of several inputs do not extend, in elements. The further
// inputs of an extended row are packed, which pays off if other rows share them; inputs that are
// constant along the row need no packing.
std::int64_t shortest_row_of_several_inputs(const Nest& nest, std::int64_t table) {
  const bool dense = nest.strides[1][0] == nest.element_size,
             constant = has_constant_parameters(nest, 0);
  const std::int64_t shared = rows_that_share(nest);
  if (constant && shared < 4) return dense ? 4 : 6;
  // Longer rows suit the hardware prefetcher and non-temporal stores, and are free if they are
  // contiguous. Rows with constant parameters need no packed ones, and vectors extend into the next
  // row: only short ones are extended, or those whose parameters many longer rows share in L1.
  const auto continues = [&nest](int k) {
    return nest.strides[k][1] == nest.strides[k][0] * nest.sizes[0];
  };
  if (nest.rank > 1 && (constant || has_constant_parameters(nest, 1)) && continues(0) &&
      continues(1)) {
    const bool many = shared >= 32, differ = nest.sizes[0] * nest.sizes[1] > table;
    if (!constant || (many && !differ)) return 256;
    return (many ? 96 : 64) / nest.element_size;
  }
  // A loop over few short rows costs more than packing their further inputs.
  const bool few = nest.rank > 1 && nest.sizes[0] * nest.sizes[1] <= 192;
  if (constant && dense && few) return 128;
  return 16;
}

}  // namespace

int row_dimension(const Nest& nest) {
  constexpr std::int64_t kLong = 64, kFew = 4;
  constexpr std::int64_t kFar = 3, kNear = 5;  // elements
  if (nest.operands <= 3 || nest.rank == 1 || nest.sizes[1] < kLong) return 0;
  if (!has_constant_parameters(nest, 0) || has_constant_parameters(nest, 1) ||
      rows_that_share(nest) >= kFew)
    return 0;
  const bool near = std::llabs(nest.strides[1][1]) <= 4 * nest.element_size;
  return nest.sizes[0] <= (near ? kNear : kFar) ? 1 : 0;
}

std::int64_t shortest_row(const Nest& nest, std::int64_t table) {
  if (nest.operands > 3) return shortest_row_of_several_inputs(nest, table);
  if (nest.operands == 3) return shortest_row_of_two_inputs(nest, table);
  return ceil_div(shortest_row_of_one_input(nest), nest.element_size);
}

}  // namespace dmlops
