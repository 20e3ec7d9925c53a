// Distributes the iterations of a loop nest over shards.
#include "traversal/shards.hpp"

#include <algorithm>
#include <cstdlib>

namespace dmlops {
namespace {

// True if the largest of the shards exceeds the mean by at most 25 %.
bool splits_evenly(std::int64_t size, std::int64_t shards) {
  const std::int64_t largest = (size + shards - 1) / shards;
  return 4 * largest * shards <= 5 * size;
}

}  // namespace

std::int64_t fitting_shards(const LoopNest& nest, std::int64_t wanted, std::int64_t threads) {
  const std::int64_t most = std::min<std::int64_t>(wanted + wanted / 2, threads);
  std::int64_t size = 1;
  for (int d = nest.rank - 1; d >= 0; --d) {
    size *= nest.loops[d].size;
    const std::int64_t largest = (size + most - 1) / most, shards = (size + largest - 1) / largest;
    if (4 * shards >= 3 * wanted && splits_evenly(size, shards)) return shards;
  }
  return wanted;
}

bool splits_rows(const LoopNest& nest, std::int64_t shards) {
  if (nest.rank < 2 || nest.row_offsets[0] != nullptr) return false;
  const auto distance = [](const Loop& loop) { return std::llabs(loop.strides[0]); };
  const Loop& rows = nest.loops[0];
  return splits_evenly(rows.size, shards) &&
         std::all_of(nest.loops + 1, nest.loops + nest.rank,
                     [&](const Loop& loop) { return distance(loop) < distance(rows); });
}

// The outermost loops whose shards are nearly equal. Otherwise the elements are split if their
// parts are long, or if there are fewer rows than shards.
int split_loop(const LoopNest& nest, std::int64_t row_bytes, std::int64_t shards) {
  std::int64_t size = 1;
  for (int d = nest.rank - 1; d >= 0; --d) {
    size *= nest.loops[d].size;
    if (splits_evenly(size, shards)) return d;
  }
  const bool long_parts = row_bytes >= shards * kBlockBytes;
  return nest.rank == 0 || long_parts || (row_bytes > 0 && size < shards) ? kElements : 0;
}

LoopNest with_iterations(const LoopNest& nest, int d, std::int64_t begin, std::int64_t end) {
  LoopNest part = nest;
  Loop& loop = part.loops[d];
  loop.size = end - begin;
  for (int k = 0; k < part.operands; ++k) {
    part.data[k] += begin * loop.strides[k];
    if (d == 0 && part.row_offsets[k] != nullptr) part.row_offsets[k] += begin;
  }
  return part;
}

}  // namespace dmlops
