// Distances in memory between the elements of a reduction's groups, and between groups.
#pragma once

#include "kernels/kernel.hpp"

namespace dmlops {

// The smallest distances in an operand, in bytes, and how the elements of a group follow each
// other. `reduced` is the set of axes as bits. Broadcast dimensions have no distance.
struct Distances {
  static constexpr std::int64_t kBroadcast = INT64_MAX;  // the distance if all dimensions are

  std::int64_t elements = kBroadcast, groups = kBroadcast;
  std::int64_t count = 1;    // elements of a group
  std::int64_t run = 1;      // elements of a group that are contiguous
  bool has_one_step = true;  // between all elements of a group

  Distances(const ConstTensorView& operand, unsigned int reduced);

  bool are_side_by_side() const { return groups < elements; }  // the groups
  // True if packing the elements of a group, run by run, takes longer than copying them first to
  // `output`, where runs are longer. Groups longer than a tile are packed in each pass.
  bool has_shorter_runs_than(const Distances& output) const {
    constexpr std::int64_t kShortest = 8, kLongest = 64;  // elements
    const std::int64_t limit = count > kTileElements ? kLongest : kShortest;
    return !has_one_step && run < limit && 2 * run <= output.run;
  }
};

// True if the output is contiguous along one of the axes, given as bits, and the input is not, in
// either order, nor broadcast.
bool is_contiguous_in_output_alone(const ConstTensorView& input, const ConstTensorView& output,
                                   unsigned int axes);

}  // namespace dmlops
