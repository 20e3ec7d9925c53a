// Distributes the iterations of a loop nest over shards.
#include "traversal/shards.hpp"

#include <algorithm>
#include <cstdlib>

namespace dmlops {
namespace {

// True if the largest of the shards exceeds the mean by at most 25 %.
bool splits_evenly(std::int64_t size, std::int64_t shards) {
  const std::int64_t largest = ceil_div(size, shards);
  return 4 * largest * shards <= 5 * size;
}

// Returns the number of shards, near the wanted one, that splits iterations nearly equally, or 0.
std::int64_t fitting_shards(std::int64_t iterations, std::int64_t wanted, std::int64_t threads) {
  const std::int64_t max_shards = std::min<std::int64_t>(wanted + wanted / 2, threads);
  const std::int64_t shards = ceil_div(iterations, ceil_div(iterations, max_shards));
  return 4 * shards >= 3 * wanted && splits_evenly(iterations, shards) ? shards : 0;
}

// True if the operand has an element for each element of the output.
bool has_every_element(const LoopNest& nest, int k) {
  for (int d = 0; d < nest.rank; ++d) {
    if (nest.loops[d].size > 1 && stride_of(nest, d, k) == 0) return false;
  }
  return nest.step[k] != 0;
}

// Returns the bytes between adjacent shards, up to a page, in the operand where they are nearest.
// In an input, two cache lines are as good as a page in the output. Broadcast operands are small
// and read from the caches.
std::int64_t distance(const LoopNest& nest, const Split& split) {
  constexpr std::int64_t kPage = 4096, kReadWeight = kPage / (2 * kLineBytes);
  std::int64_t shard = nest.length / split.shards;
  int loop = split.first;
  if (split.has_loops()) {
    std::int64_t iterations = 1;
    for (int d = split.first; d <= split.last; ++d) iterations *= nest.loops[d].size;
    shard = std::max<std::int64_t>(iterations / split.shards, 1);
    for (; loop < split.last && shard >= nest.loops[loop].size; ++loop)
      shard /= nest.loops[loop].size;
  }
  std::int64_t nearest = kPage;
  for (int k = 0; k < nest.operands; ++k) {
    if (!has_every_element(nest, k)) continue;
    const std::int64_t step = split.has_loops() ? stride_of(nest, loop, k) : nest.step[k];
    const auto bytes = std::min<std::int64_t>(shard * std::llabs(step), kPage);
    nearest = std::min(nearest, k == 0 ? bytes : bytes * kReadWeight);
  }
  return nearest;
}

}  // namespace

std::int64_t stride_of(const LoopNest& nest, int d, int k) {
  const std::int64_t* const offsets = d == 0 ? nest.row_offsets[k] : nullptr;
  return offsets == nullptr ? nest.loops[d].strides[k] : offsets[1] - offsets[0];
}

// Shards that share cache lines wait for each other where they write, and read lines repeatedly
// where an input is transposed. Of splits as good, the outermost loops come first, since kernels
// then run whole blocks, and the elements of rows last.
Split choose_split(const LoopNest& nest, std::int64_t wanted, std::int64_t threads) {
  Split best = {0, nest.rank - 1, wanted};
  std::int64_t farthest = 0;
  const auto consider = [&](const Split& split) {
    const std::int64_t bytes = distance(nest, split);
    if (bytes <= farthest) return;
    farthest = bytes;
    best = split;
  };
  std::int64_t rows = 1;
  for (int last = nest.rank - 1; last >= 0; --last) {
    rows *= nest.loops[last].size;
    std::int64_t iterations = 1;
    for (int first = last; first >= 0; --first) {
      iterations *= nest.loops[first].size;
      const std::int64_t shards = fitting_shards(iterations, wanted, threads);
      if (shards > 0) consider({first, last, shards});
    }
  }
  // Long rows are split more evenly than their number.
  const std::int64_t part = nest.length / wanted;
  if (rows >= wanted && part * std::llabs(nest.step[0]) < kBlockBytes)
    consider({0, nest.rank - 1, wanted});
  if (part >= nest.unit) consider({0, -1, wanted});
  return best;
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

LoopNest with_elements(const LoopNest& nest, std::int64_t begin, std::int64_t end) {
  LoopNest part = nest;
  part.length = end - begin;
  for (int k = 0; k < part.operands; ++k) part.data[k] += begin * part.step[k];
  return part;
}

}  // namespace dmlops
