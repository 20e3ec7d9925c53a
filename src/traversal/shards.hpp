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
  std::int64_t unit = 0;  // elements; parts of a row begin at multiples
  std::int64_t step[kMaxOperands];
  char* data[kMaxOperands];
  int rank = 0;
  Loop loops[kMaxRank];
  const std::int64_t* row_offsets[kMaxOperands] = {};  // those of Rows

  bool has_rows() const { return rank > 0 && loops[0].size > 1; }
};

// Returns the stride of a loop in an operand.
std::int64_t stride_of(const LoopNest& nest, int d, int k);

// The iterations that are distributed over shards: those of the loops `first` to `last`, counted
// like those of a single loop, or, if there are no such loops, those over the elements of each row.
struct Split {
  int first = 0, last = -1;
  std::int64_t shards = 1;

  bool has_loops() const { return first <= last; }
};

// Returns the split into nearly equal shards, near the wanted number, whose shards are farthest
// apart in memory.
Split choose_split(const LoopNest& nest, std::int64_t wanted, std::int64_t threads);

// Returns the nest with the iterations [begin, end) of loop d.
LoopNest with_iterations(const LoopNest& nest, int d, std::int64_t begin, std::int64_t end);

// Returns the nest with the elements [begin, end) of each row.
LoopNest with_elements(const LoopNest& nest, std::int64_t begin, std::int64_t end);

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
  const std::int64_t whole = ceil_div(begin, inner), last = end / inner;
  if (whole > last) return visit_within(last, begin % inner, end % inner);
  if (begin % inner != 0) visit_within(whole - 1, begin % inner, inner);
  if (whole < last) visit(with_iterations(nest, d, whole, last));
  visit_within(last, 0, end % inner);
}

// Calls visit(nest) for the iterations, or the elements, in shard i.
template <class Visit>
void for_each_box_of_shard(const LoopNest& nest, const Split& split, std::int64_t i,
                           const Visit& visit) {
  std::int64_t count = split.has_loops() ? 1 : nest.length;
  for (int d = split.first; d <= split.last; ++d) count *= nest.loops[d].size;
  const std::int64_t unit = split.has_loops() ? 1 : nest.unit,
                     begin = shard_begin(count, split.shards, i, unit),
                     end = shard_begin(count, split.shards, i + 1, unit);
  if (begin == end) return;
  if (!split.has_loops()) return visit(with_elements(nest, begin, end));
  for_each_box(nest, split.first, split.last, begin, end, visit);
}

}  // namespace dmlops
