// log_softmax of groups: the loop over a group's elements, the fixed order of its sum, and the
// steps that rows and columns share.
//
// Element i of a group belongs to lane i % 16. A lane adds its 64 elements of a block, in float64
// for float32 elements and in float32 for float16 ones, and adds the blocks in float64; finally
// lane j + 8 is added to lane j, then lane j + 4, and so on. Rows and columns keep this order,
// which makes results independent of instruction set and layout.
#pragma once

#include "kernels/softmax/log_softmax_log_sum_exp.hpp"

namespace dmlops::DMLOPS_TARGET {

// The group size from which the plain sum is tried first. In shorter float16 groups it often fails,
// so these begin with the maxima.
template <class T>
constexpr std::int64_t kPlainFirst = std::is_same_v<T, float> ? 0 : 128;

// A batch of groups and its log-sum-exp. `Way` implements the passes over memory, along rows or
// down columns.
template <class Way, class T, int kCapacity>
class Batch {
 protected:
  void run(std::int64_t count) {
    Way& way = static_cast<Way&>(*this);
    bool enough = false;
    if (kPlainFirst<T> == 0 || way.elements() >= kPlainFirst<T>) {
      if (in_range_) {
        way.template add_plain<true>();
        in_range_ = log_sum_exp_.all_from(count, kExpEnd);
      }
      if (!in_range_) way.template add_plain<false>();
      enough = log_sum_exp_.take_plain(count);
    } else {
      way.find_maxima();
      log_sum_exp_.take_nothing(count);
    }
    if (!enough) {
      way.add_excluding_max();
      log_sum_exp_.take_excluding_max(count);
    }
    log_sum_exp_.compute(count);
    way.finish();
  }

  LogSumExp<T, kCapacity> log_sum_exp_ = {};

 private:
  bool in_range_ = true;  // true until an element is below kExpEnd
};

// The loop nest of a group's elements in one operand, the outermost dimension first.
struct ElementLoops {
  int rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (int d = 0; d < rank; ++d) product *= sizes[d];
    return product;
  }

  std::int64_t run() const { return sizes[rank - 1]; }     // length of the innermost loop
  std::int64_t step() const { return strides[rank - 1]; }  // its stride

  // Prefetches the beginning of the run after that at `row`, which the hardware prefetcher does not
  // follow.
  template <int kWrite>
  DMLOPS_INLINE void prefetch_next(const char* row) const {
    if (rank == 1) return;
    constexpr std::int64_t kMost = 2048;
    for (std::int64_t i = 0; i < min(run() * step(), kMost); i += kLineBytes) {
      __builtin_prefetch(row + strides[rank - 2] + i, kWrite);
    }
  }

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

// Byte offsets of up to kCapacity groups in both operands.
template <int kCapacity>
class GroupOffsets {
 public:
  explicit GroupOffsets(const ReductionNest& kept) : kept_(kept) {}

  // Selects `count` groups from `first` on. Groups with a common step need no table of offsets
  // unless `table`.
  void select(std::int64_t first, std::int64_t count, bool table) {
    std::int64_t index[kMaxRank] = {}, in = 0, out = 0, position = first;
    for (int d = 0; d < kept_.rank; ++d) {
      index[d] = position % kept_.sizes[d];
      position /= kept_.sizes[d];
      in += index[d] * kept_.strides[1][d];
      out += index[d] * kept_.strides[0][d];
    }
    if (kept_.rank > 0 && index[0] + count <= kept_.sizes[0]) {
      input_step = kept_.strides[1][0];
      output_step = kept_.strides[0][0];
      const bool filled = table || input_step == 0 || output_step == 0;
      for (std::int64_t k = 0; k < (filled ? count : 1); ++k) {
        input[k] = in + k * input_step;
        output[k] = out + k * output_step;
      }
      return;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      input[k] = in;
      output[k] = out;
      for (int d = 0; d < kept_.rank; ++d) {
        in += kept_.strides[1][d];
        out += kept_.strides[0][d];
        if (++index[d] < kept_.sizes[d]) break;
        in -= kept_.sizes[d] * kept_.strides[1][d];
        out -= kept_.sizes[d] * kept_.strides[0][d];
        index[d] = 0;
      }
    }
    input_step = common_step(input, count);
    output_step = common_step(output, count);
  }

  std::int64_t input[kCapacity], output[kCapacity];
  std::int64_t input_step = 0, output_step = 0;  // bytes between groups; 0 without a common step

 private:
  static std::int64_t common_step(const std::int64_t* offsets, std::int64_t count) {
    const std::int64_t step = count > 1 ? offsets[1] - offsets[0] : 0;
    for (std::int64_t k = 2; k < count; ++k) {
      if (offsets[k] - offsets[k - 1] != step) return 0;
    }
    return step;
  }

  const ReductionNest& kept_;
};

}  // namespace dmlops::DMLOPS_TARGET
