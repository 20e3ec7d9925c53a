// Sweeps of a reduction's formula over tiles of groups, along rows.
//
// A formula has kSweeps sweeps over the elements of the groups that need them, then results. It
// keeps the numbers of up to kTileGroups groups. Bit o of reads(s) is set if sweep s reads operand
// o; reads(kSweeps) is for the results, to which a fused activation applies if activates(). Runs of
// operands in kConstantInRuns, as bits, may have a single element.
#pragma once

#include "kernels/blocks/group_tiles.hpp"

namespace dmlops::DMLOPS_TARGET {

// Calls visit(begin, length) for each chunk of `chunk` elements of [from, to).
template <class Visit>
DMLOPS_INLINE void for_each_chunk(std::int64_t from, std::int64_t to, std::int64_t chunk,
                                  const Visit& visit) {
  for (std::int64_t begin = from, length; begin < to; begin += length) {
    length = min(chunk, to - begin);
    visit(begin, length);
  }
}

// Adds the elements [from, to) of the selected groups that need sweep s. Aligned, since the place
// of the loops within cache lines would change the time by up to 12 %.
template <class Formula>
DMLOPS_NO_INLINE __attribute__((aligned(64))) void sweep_tiles(
    int s, GroupTiles& tiles, Formula& formula, typename Formula::State* states, const bool* needed,
    std::int64_t groups, std::int64_t from, std::int64_t to) {
  const auto sweep = [&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
    tiles.load(formula.reads(s), begin, length, tiles.shortest_summed());
    for (std::int64_t k = 0; k < groups; ++k) {
      if (needed[k]) formula.sweep(s, states, tiles, k, begin);
    }
  };
  for_each_chunk(from, to, tiles.tile_length(formula.reads(s)), sweep);
}

// Writes the results of the elements [from, to) of the selected groups.
template <class Formula>
DMLOPS_NO_INLINE void finish_tiles(GroupTiles& tiles, Formula& formula, std::int64_t groups,
                                   std::int64_t from, std::int64_t to) {
  const unsigned int operands = formula.reads(Formula::kSweeps) | 1u;
  const std::int64_t shortest = tiles.shortest_results(Formula::kConstantInRuns);
  const auto finish = [&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
    tiles.load(operands, begin, length, shortest, Formula::kConstantInRuns);
    for (std::int64_t k = 0; k < groups; ++k) formula.finish(tiles, k, begin);
    tiles.store(begin, length);
  };
  // A fused activation has a buffer for a tile.
  const std::int64_t length =
      formula.activates() ? tiles.tile_length() : tiles.tile_length(operands);
  for_each_chunk(from, to, length, finish);
}

}  // namespace dmlops::DMLOPS_TARGET
