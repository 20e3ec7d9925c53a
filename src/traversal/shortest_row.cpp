// Decides which rows are extended over further dimensions.
#include "traversal/shortest_row.hpp"

#include <algorithm>
#include <cstdlib>

#include "traversal/policy.hpp"

namespace dmlops {
namespace {

// Returns the size of the shortest row that is not extended, in bytes: the traversal of a row costs
// as much as the packing of a few runs.
std::int64_t shortest_row_of_one_input(const Nest& nest) {
  const std::int64_t size = nest.element_size, step = nest.strides[1][0];
  if (step == size && nest.strides[0][0] == size) return 32;
  // Extended rows compute broadcast results more than once.
  if (step == 0) return nest.rank > 1 && nest.sizes[1] < 16 ? 64 : 32;
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
  const bool few = length * nest.sizes[1] <= 192;
  for (int k = 1; k < nest.operands; ++k) {
    if (is_contiguous(k)) continue;
    if (repeats(k)) {
      shortest = 256;
    } else if (nest.strides[k][0] == 0) {
      return few ? 128 : kLineBytes / size;  // each run is filled by a store
    } else {
      return few ? 128 : 16;
    }
  }
  return shortest;
}

// Returns the shortest row that operators of several inputs do not extend, in elements. The further
// inputs of an extended row are packed, which pays off if other rows share them; inputs that are
// constant along the row need no packing.
std::int64_t shortest_row_of_several_inputs(const Nest& nest, std::int64_t table) {
  const auto is_shared = [&nest](int d) {
    for (int k = 2; k < nest.operands; ++k) {
      if (nest.strides[k][d] != 0) return false;
    }
    return true;
  };
  const bool dense = nest.strides[1][0] == nest.element_size;
  std::int64_t shared = 1;  // rows of a shard that share the further inputs of a longer row
  for (int d = 1; d < nest.rank; ++d) {
    if (is_shared(d)) shared = std::max(shared, nest.sizes[d]);
  }
  shared /= shard_count(nest.bytes_per_element * element_count(nest));
  if (is_shared(0) && shared < 4) return dense ? 4 : 6;
  // Longer rows suit the hardware prefetcher and non-temporal stores, and are free if they are
  // contiguous; packed parameters of longer rows would leave L1. Rows with constant parameters stay
  // as they are if the parameters of longer rows differed from row to row, even short ones if few
  // rows share parameters.
  const auto continues = [&nest](int k) {
    return nest.strides[k][1] == nest.strides[k][0] * nest.sizes[0];
  };
  if (nest.rank > 1 && (is_shared(0) || is_shared(1)) && continues(0) && continues(1)) {
    const bool differ = is_shared(0) && nest.sizes[0] * nest.sizes[1] > table;
    return !differ ? 256 : shared < 32 ? 32 : 64;
  }
  // A loop over few short rows costs more than packing their further inputs.
  const bool few = nest.rank > 1 && nest.sizes[0] * nest.sizes[1] <= 192;
  return is_shared(0) && dense && few ? 128 : 16;
}

}  // namespace

std::int64_t shortest_row(const Nest& nest, std::int64_t table) {
  if (nest.operands > 3) return shortest_row_of_several_inputs(nest, table);
  if (nest.operands == 3) return shortest_row_of_two_inputs(nest, table);
  const std::int64_t size = nest.element_size;
  return (shortest_row_of_one_input(nest) + size - 1) / size;
}

}  // namespace dmlops
