// Groups in an operand: the loop over a group's elements, and the offsets of several groups.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

// The loop nest of a group's elements in one operand, the outermost dimension first.
struct ElementLoops {
  int rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;

  std::int64_t count() const;

  std::int64_t run() const { return sizes[rank - 1]; }     // length of the innermost loop
  std::int64_t step() const { return strides[rank - 1]; }  // its stride

  // Returns the loops with dimensions merged as far as the strides allow, in the given arrays of
  // kMaxRank.
  ElementLoops merged(std::int64_t* merged_sizes, std::int64_t* merged_strides) const;

  // Returns the byte offset of an element.
  std::int64_t offset(std::int64_t i) const;

  // Lists `count` byte offsets from that of index `first` on, over the outer dimensions.
  void list_offsets(int dimensions, std::int64_t first, std::int64_t count,
                    std::int64_t* offsets) const;

  // Calls visit(byte offset of a run, its index in the chunk, its length) for the chunk [begin,
  // end) of the group.
  template <class Visit>
  DMLOPS_INLINE void for_each_run(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    if (rank == 1) return visit(begin * step(), 0, end - begin);
    const std::int64_t inner = run();
    std::int64_t index[kMaxRank], offset = 0, row = begin / inner, first = begin % inner;
    for (int d = rank - 2; d >= 0; --d) {
      index[d] = row % sizes[d];
      row /= sizes[d];
      offset += index[d] * strides[d];
    }
    for (std::int64_t i = begin; i < end; first = 0) {
      const std::int64_t length = min(inner - first, end - i);
      visit(offset + first * step(), i - begin, length);
      i += length;
      for (int d = rank - 2; d >= 0; --d) {
        offset += strides[d];
        if (++index[d] < sizes[d]) break;
        offset -= sizes[d] * strides[d];
        index[d] = 0;
      }
    }
  }

  // True if runs are shorter than those of the next outer dimension in a chunk of `count` elements.
  bool inner_is_short(std::int64_t count) const {
    return rank > 1 && run() < sizes[rank - 2] && run() * run() < count;
  }

  // `count` of each `period` elements of a chunk, from the one at `first` on, which are at `offset`
  // and further multiples of `step`.
  struct Run {
    std::int64_t offset, step;
    std::int64_t first, period, count;
  };
  // As for_each_run(), but calls visit(run), and short runs are replaced by those of the next outer
  // dimension.
  template <class Visit>
  DMLOPS_INLINE void for_each_long_run(std::int64_t begin, std::int64_t end,
                                       const Visit& visit) const {
    const bool outer = inner_is_short(end - begin);
    const std::int64_t period = outer ? run() : 1;
    const ElementLoops loops = {outer ? rank - 1 : rank, sizes, strides};
    for (std::int64_t j = 0; j < period; ++j) {
      const auto index = [&](std::int64_t i) { return (i - j + period - 1) / period; };
      const std::int64_t start = index(begin);
      loops.for_each_run(start, index(end),
                         [&](std::int64_t offset, std::int64_t i, std::int64_t count) {
                           visit(Run{offset + (outer ? j * step() : 0), loops.step(),
                                     (start + i) * period + j - begin, period, count});
                         });
    }
  }
};

DMLOPS_INLINE ElementLoops element_loops(const Reduction& groups, int operand) {
  const ReductionNest& elements = groups.elements;
  return {elements.rank, elements.sizes, elements.strides[operand]};
}

// True if the operand is broadcast along all dimensions.
bool has_no_strides(const ReductionNest& nest, int operand);

// Returns the smallest distance between elements of a group, in bytes, or INT64_MAX.
std::int64_t nearest_elements(const ElementLoops& loops);

// Sets `sorted` to the elements of the groups in the order of the input's memory. Returns false if
// they have that order already, or if an operand is not contiguous in it.
bool sort_elements(const Reduction& groups, std::int64_t element_size, ReductionNest& sorted);

// Returns the groups with other loops over their elements and over groups, in as many parts;
// `stage`, `by_lanes` and `split` are not copied.
inline Reduction with_loops(const Reduction& groups, const ReductionNest& elements,
                            const ReductionNest& kept) {
  Reduction result = {elements, kept};
  std::memcpy(result.data, groups.data, sizeof result.data);
  result.first = groups.first;
  result.end = groups.end;
  result.streaming = groups.streaming;
  result.parts = groups.parts;
  return result;
}

// Returns the groups without the operands that differ in their elements and are not in `read`, a
// set of bits.
inline Reduction restricted(const Reduction& groups, unsigned int read) {
  Reduction result = groups;
  for (int o = 0; o < kFirstGroupOperand; ++o) {
    if (!has_bit(read, o) && !has_no_strides(groups.elements, o)) result.data[o] = nullptr;
  }
  return result;
}

// True if columns would leave so many lanes empty that rows take less time: groups that are few, or
// whose innermost dimension is shorter than a vector, and that are long enough.
bool leave_lanes_empty(const Reduction& groups);

// Groups in an operand, as up to kCapacity runs of groups with a common step. offsets() needs at
// most kCapacity groups.
template <int kCapacity>
class OperandGroups {
 public:
  struct Run {
    std::int64_t first, count;
    std::int64_t offset;  // of the first group, in bytes
  };

  // Selects `count` groups from `first` on.
  void select(const ReductionNest& kept, int operand, std::int64_t first, std::int64_t count) {
    const std::int64_t* const strides = kept.strides[operand];
    const int outermost = kept.rank - 1;
    std::int64_t index[kMaxRank] = {}, offset = 0;
    for (int d = 0; d <= outermost; ++d) {
      index[d] = d < outermost ? first % kept.sizes[d] : first;
      offset += index[d] * strides[d];
      if (d < outermost) first /= kept.sizes[d];
    }
    step = kept.rank > 0 ? strides[0] : 0;
    filled_ = false;
    std::int64_t k = 0;
    Run* last = runs;
    *last = {0, 0, offset};
    const auto add = [&](std::int64_t length) DMLOPS_LAMBDA_INLINE {
      if (last->offset + last->count * step != offset) *++last = {k, 0, offset};
      last->count += length;
      k += length;
    };
    const auto carry = [&](int d) DMLOPS_LAMBDA_INLINE {
      for (; d < outermost && index[d] == kept.sizes[d]; ++d) {
        offset += strides[d + 1] - kept.sizes[d] * strides[d];
        index[d] = 0;
        ++index[d + 1];
      }
    };
    const std::int64_t run = kept.rank > 0 ? kept.sizes[0] : count;
    for (;;) {
      const std::int64_t length = min(count - k, run - index[0]);
      add(length);
      if (k == count) break;
      offset += length * step;
      index[0] += length;
      carry(0);
      // Adds whole runs along dimension 1 without carries, since short runs are many. Further
      // groups imply that there is a dimension 1.
      const std::int64_t whole = min((count - k) / run, kept.sizes[1] - index[1]);
      for (std::int64_t i = 0; i < whole; ++i, offset += strides[1]) add(run);
      if (k == count) break;
      index[1] += whole;
      carry(1);
    }
    run_count = static_cast<int>(last - runs) + 1;
  }

  bool is_uniform() const { return run_count == 1; }
  // True if an offset table is faster than the runs.
  bool has_short_runs(std::int64_t element_size) const {
    const std::int64_t shortest = step == element_size || step == 0 ? 8 : 32;
    const Run& last = runs[run_count - 1];
    return run_count > 1 && last.first + last.count < shortest * run_count;
  }

  // Returns the offset of each group.
  const std::int64_t* offsets() {
    for (int r = 0; !filled_ && r < run_count; ++r) {
      for (std::int64_t k = 0; k < runs[r].count; ++k)
        offsets_[runs[r].first + k] = runs[r].offset + k * step;
    }
    filled_ = true;
    return offsets_;
  }

  int run_count = 0;
  Run runs[kCapacity];
  std::int64_t step = 0;  // bytes between the groups of a run

 private:
  bool filled_ = false;
  std::int64_t offsets_[kCapacity];
};

}  // namespace dmlops::DMLOPS_TARGET
