// Groups in an operand: the loop over a group's elements, and the offsets of several groups.
#pragma once

#include "kernels/blocks/memory.hpp"

namespace dmlops::DMLOPS_TARGET {

// The loop nest of a group's elements in one operand, the outermost dimension first.
struct ElementLoops {
  int rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;

  std::int64_t count() const;

  std::int64_t run() const { return sizes[rank - 1]; }     // length of the innermost loop
  std::int64_t step() const { return strides[rank - 1]; }  // its stride

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
};

DMLOPS_INLINE ElementLoops element_loops(const Reduction& groups, int operand) {
  const ReductionNest& elements = groups.elements;
  return {elements.rank, elements.sizes, elements.strides[operand]};
}

// True if the operand is broadcast along all dimensions.
bool has_no_strides(const ReductionNest& nest, int operand);

// True if groups are computed along rows. `along_rows` is the minimum length of contiguous groups.
bool fills_rows(const Reduction& groups, std::int64_t along_rows);

// Groups in an operand, as up to kCapacity runs of groups with a common step. offsets() needs at
// most kCapacity groups.
template <int kCapacity>
class OperandGroups {
 public:
  struct Run {
    std::int64_t first, count;
    std::int64_t offset;  // of the first group, in bytes
  };

  void clear(std::int64_t between_groups) {
    step = between_groups;
    run_count = 0;
    filled_ = false;
  }
  void append(std::int64_t first, std::int64_t count, std::int64_t offset) {
    if (run_count > 0) {
      Run& last = runs[run_count - 1];
      if (last.offset + last.count * step == offset) {
        last.count += count;
        return;
      }
    }
    runs[run_count++] = {first, count, offset};
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

// A selection of groups in an input, and in the output.
template <int kCapacity>
class GroupOffsets {
 public:
  explicit GroupOffsets(const ReductionNest& kept, int operand = 1)
      : kept_(kept), in_(kept.strides[operand]), out_(kept.strides[0]) {}

  // Selects `count` groups from `first` on.
  void select(std::int64_t first, std::int64_t count) {
    std::int64_t index[kMaxRank] = {}, in = 0, out = 0, position = first;
    for (int d = 0; d < kept_.rank; ++d) {
      index[d] = position % kept_.sizes[d];
      position /= kept_.sizes[d];
      in += index[d] * in_[d];
      out += index[d] * out_[d];
    }
    input.clear(kept_.rank > 0 ? in_[0] : 0);
    output.clear(kept_.rank > 0 ? out_[0] : 0);
    for (std::int64_t k = 0; k < count;) {
      const std::int64_t length =
          kept_.rank > 0 ? min(count - k, kept_.sizes[0] - index[0]) : count;
      input.append(k, length, in);
      output.append(k, length, out);
      k += length;
      if (k == count) return;
      in += length * input.step;
      out += length * output.step;
      index[0] += length;
      for (int d = 0; index[d] == kept_.sizes[d]; ++d) {
        in += in_[d + 1] - kept_.sizes[d] * in_[d];
        out += out_[d + 1] - kept_.sizes[d] * out_[d];
        index[d] = 0;
        ++index[d + 1];
      }
    }
  }

  OperandGroups<kCapacity> input, output;

 private:
  const ReductionNest& kept_;
  const std::int64_t* const in_;
  const std::int64_t* const out_;
};

}  // namespace dmlops::DMLOPS_TARGET
