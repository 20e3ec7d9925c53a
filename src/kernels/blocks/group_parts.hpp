// Few long groups in parts: a part has some blocks of the groups' sums, and is computed by a
// thread.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/convert.hpp"

namespace dmlops::DMLOPS_TARGET {

// A function rather than a lambda, whose symbol would not be within the namespace.
template <class Compute>
void compute_part(const void* compute, int part) {
  (*static_cast<const Compute*>(compute))(part);
}

// Calls compute(part) for each part, by several threads, and returns after all.
template <class Compute>
void for_each_part(const Reduction& groups, std::int64_t parts, const Compute& compute) {
  groups.parallel_for(static_cast<int>(parts), compute_part<Compute>, &compute);
}

// The lanes of the sums of each block of few groups, and their totals.
class BlockSums {
 public:
  // `elements` of a group; `lanes` of all sums of a block.
  BlockSums(const Reduction& groups, std::int64_t elements, std::int64_t lanes)
      : groups_(groups),
        count_(groups.end - groups.first),
        blocks_(sum_blocks(elements)),
        lanes_(lanes),
        totals_(static_cast<double*>(groups.part_sums)) {}

  double* lanes(std::int64_t group, std::int64_t block) const {
    return totals_ + (count_ + group * blocks_ + block) * lanes_;
  }
  // Sets all lanes of a group to 0.
  void clear(std::int64_t group) const {
    const std::int64_t bytes = blocks_ * lanes_ * std::int64_t{sizeof(double)};
    std::memset(lanes(group, 0), 0, static_cast<std::size_t>(bytes));
  }
  double* total(std::int64_t group) const { return totals_ + group * lanes_; }

  // Adds up the blocks, in order; a part has some lanes.
  DMLOPS_NO_INLINE void add_up() const {
    const std::int64_t lines = count_ * lanes_ / kLine;
    const std::int64_t parts = min(groups_.parts, lines);
    for_each_part(groups_, parts, [&](std::int64_t part) {
      const std::int64_t end = lines * (part + 1) / parts;
      std::int64_t line = lines * part / parts;
      if (line % 2 == 1) add_up<1>(line++);
      for (; line + 2 <= end; line += 2) add_up<2>(line);
      if (line < end) add_up<1>(line);
    });
  }

 private:
  static constexpr std::int64_t kLine = kLineBytes / sizeof(double);

  // Adds up cache lines of lanes; a group's are even in number.
  template <int kLines>
  void add_up(std::int64_t line) const {
    constexpr std::int64_t here = kLanes<f64x>, vectors = kLines * kLine / here;
    const std::int64_t group = line * kLine / lanes_, first = line * kLine % lanes_;
    const double* from = lanes(group, 0) + first;
    f64x sums[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[v] = load<f64x>(from + v * here);
    for (std::int64_t b = 1; b < blocks_; ++b) {
      from += lanes_;
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) sums[v] = sums[v] + load<f64x>(from + v * here);
    }
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) store(total(group) + first + v * here, sums[v]);
  }

  const Reduction& groups_;
  const std::int64_t count_, blocks_, lanes_;
  double* const totals_;
};

}  // namespace dmlops::DMLOPS_TARGET
