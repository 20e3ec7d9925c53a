// Shards of a loop nest: each is a range of the iterations of its outer loops.
#pragma once

#include <cstdint>

#include "kernels/kernel.hpp"
#include "traversal/policy.hpp"

namespace dmlops {

// Rows of equal length, and the loops around them, the first of which counts rows.
struct LoopNest {
  int operands = 0;
  std::int64_t length = 0;
  char* data[kMaxOperands];
  int rank = 0;
  Loop loops[kMaxRank];
  const std::int64_t* row_offsets[kMaxOperands] = {};  // those of Rows
};

constexpr int kElements = -1;  // the loop over the elements of a row

// Returns the number of shards, near the wanted one, that splits outer loops into shards of nearly
// equal size.
std::int64_t fitting_shards(const LoopNest& nest, std::int64_t wanted, std::int64_t threads);

// True if the shards are ranges of rows, since these are farthest apart in the output: shards of
// the outer loops would write to the same cache lines.
bool splits_rows(const LoopNest& nest, std::int64_t shards);

// Returns the innermost of the loops whose iterations, counted like those of a single loop, are
// distributed over the shards, or kElements. `row_bytes` is 0 if rows cannot be split.
int split_loop(const LoopNest& nest, std::int64_t row_bytes, std::int64_t shards);

// Returns the nest with the iterations [begin, end) of loop d.
LoopNest with_iterations(const LoopNest& nest, int d, std::int64_t begin, std::int64_t end);

// Calls visit(nest) for the iterations [begin, end) of the loops `first` to d, counted like those
// of a single loop.
template <class Visit>
void for_each_box(const LoopNest& nest, int first, int d, std::int64_t begin, std::int64_t end,
                  const Visit& visit) {
  std::int64_t inner = 1;  // iterations of the loops within loop d
  for (int i = first; i < d; ++i) inner *= nest.loops[i].size;
  const auto visit_within = [&](std::int64_t i, std::int64_t from, std::int64_t to) {
    if (from < to) for_each_box(with_iterations(nest, d, i, i + 1), first, d - 1, from, to, visit);
  };
  const std::int64_t whole = (begin + inner - 1) / inner, last = end / inner;
  if (whole > last) return visit_within(last, begin % inner, end % inner);
  if (begin % inner != 0) visit_within(whole - 1, begin % inner, inner);
  if (whole < last) visit(with_iterations(nest, d, whole, last));
  visit_within(last, 0, end % inner);
}

// Calls visit(nest) for the iterations in shard i of the loops from `first` on.
template <class Visit>
void for_each_box_of_shard(const LoopNest& nest, int first, std::int64_t shards, std::int64_t i,
                           const Visit& visit) {
  std::int64_t count = 1;
  for (int d = first; d < nest.rank; ++d) count *= nest.loops[d].size;
  const std::int64_t begin = shard_begin(count, shards, i, 1),
                     end = shard_begin(count, shards, i + 1, 1);
  if (begin < end) for_each_box(nest, first, nest.rank - 1, begin, end, visit);
}

}  // namespace dmlops
