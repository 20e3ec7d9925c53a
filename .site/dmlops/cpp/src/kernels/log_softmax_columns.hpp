// log_softmax down columns: many groups at once, each in a lane of its own. A lane of all their
// sums is a row of an array.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kColumns = 64;

// 64 elements of each of up to 64 groups, as dense rows: one row of the sums' lanes. A missing
// column is 0 throughout.
template <class T>
class ColumnBlock {
 public:
  ColumnBlock(const Groups& groups, const GroupShape& in, const GroupShape& out)
      : groups_(groups), in_(in), out_(out), count_(in.count()) {}

  // The groups from `first` on.
  void select(std::int64_t first, std::int64_t columns) {
    input_ = groups_.input + first * groups_.input_step;
    output_ = groups_.output + first * groups_.output_step;
    columns_ = columns;
    loaded_ = -1;
  }

  std::int64_t columns() const { return columns_; }
  std::int64_t blocks() const { return (count_ + kSumLanes - 1) / kSumLanes; }
  std::int64_t rows(std::int64_t block) const {
    return least(kSumLanes, count_ - block * kSumLanes);
  }

  // Elements [64 block, 64 block + rows) of the groups.
  const T* load(std::int64_t block) {
    if (block != loaded_) {
      const std::int64_t begin = block * kSumLanes;
      in_.for_each_run(begin, begin + rows(block),
                       [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
                         prefetch_next<0>(input_ + offset, in_.step(), length, groups_.input_step);
                         pack<Bits<T>>(buffer_ + i * kPitch, kPitch, columns_, length,
                                       input_ + offset, groups_.input_step, in_.step());
                       });
      loaded_ = block;
    }
    return reinterpret_cast<const T*>(buffer_);
  }

  // Where results for the loaded elements go; store() brings them to the output.
  T* results() { return reinterpret_cast<T*>(buffer_); }
  void store(std::int64_t block) {
    const std::int64_t begin = block * kSumLanes;
    loaded_ = -1;
    out_.for_each_run(
        begin, begin + rows(block), [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
          // Along the groups or along their elements, whichever are neighbours.
          const char* source = buffer_ + i * kPitch;
          char* target = output_ + offset;
          prefetch_next<1>(target, out_.step(), length, groups_.output_step);
          if (groups_.output_step == kSize) {
            pack<Bits<T>>(target, out_.step(), columns_, length, source, kSize, kPitch);
          } else if (out_.step() == kSize) {
            pack<Bits<T>>(target, groups_.output_step, length, columns_, source, kPitch, kSize);
          } else {
            for (std::int64_t row = 0; row < length; ++row) {
              unpack<Bits<T>>(target + row * out_.step(), groups_.output_step, 0,
                              source + row * kPitch, columns_, 1);
            }
          }
        });
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kPitch = kColumns * kSize;

  // Asks for the next block's lines where columns are neighbours: a processor does not foresee
  // pieces of so few bytes.
  template <int kWrite>
  void prefetch_next(const char* row, std::int64_t step, std::int64_t rows,
                     std::int64_t group_step) const {
    if (group_step != kSize || columns_ < kColumns) return;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < kPitch; i += 64) {
        __builtin_prefetch(row + r * step + kPitch + i, kWrite);
      }
    }
  }

  const Groups& groups_;
  const GroupShape& in_;
  const GroupShape& out_;
  std::int64_t count_, columns_ = 0, loaded_ = -1;
  const char* input_ = nullptr;
  char* output_ = nullptr;
  alignas(kVectorBytes) char buffer_[kSumLanes * kPitch] = {};
};

// Calls visit(c) for the first lane of each vector of columns.
template <class Visit>
DMLOPS_INLINE void for_each_vector(std::int64_t columns, const Visit& visit) {
  for (std::int64_t c = 0; c < columns; c += kLanes<f32x>) visit(c);
}

// The sums of up to 64 groups, each lane of all of them in a row.
template <class T>
class ColumnSums {
 public:
  using Results = Subtrahends<T, kColumns>;

  // The groups' sums and numbers of maxima, from their maxima.
  void add_up(ColumnBlock<T>& block, Results& results) {
    const std::int64_t blocks = block.blocks(), columns = block.columns();
    for (std::int32_t& counted : maxima_) counted = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const T* x = block.load(b);
      const std::int64_t rows = block.rows(b), step = b % kSumSteps;
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const Terms<T> terms(load<f32x>(results.max + c));
        i32x minus_maxima = {};
        for (std::int64_t r = 0; r < rows; ++r) {
          const f32x term = terms(load<f32x>(x + r * kColumns + c), minus_maxima);
          if (blocks == 1) {
            store(sums_[r] + c, term);
          } else {
            add(r, c, term, step == 0);
          }
        }
        store(maxima_ + c, load<i32x>(maxima_ + c) - minus_maxima);
      });
      if (blocks > 1 && (step == kSumSteps - 1 || b == blocks - 1)) {
        move_to_lanes(b < kSumSteps, step == 0 ? rows : kSumLanes, columns);
      }
    }
    for (std::int64_t c = 0; c < kColumns; ++c) {
      results.maxima[c] = static_cast<double>(maxima_[c]);
    }
    const std::int64_t used = blocks == 1 ? block.rows(0) : kSumLanes;
    for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
      store(results.sum + c, combined(c, used, blocks > 1));
    }
  }

 private:
  DMLOPS_INLINE void add(std::int64_t lane, std::int64_t c, f32x term, bool first) {
    LaneSum<T> sum;
    if (!first) sum = LaneSum<T>{load<f32x>(sums_[lane] + c), load<f32x>(lost_[lane] + c)};
    sum += term;
    store(sums_[lane] + c, sum.sum);
    store(lost_[lane] + c, sum.lost);
  }

  // The first `used` lanes count: a last block can be short.
  void move_to_lanes(bool first, std::int64_t used, std::int64_t columns) {
    for (std::int64_t lane = 0; lane < used; ++lane) {
      for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
        const f64x total = LaneSum<T>::total(sums_[lane] + c, lost_[lane] + c);
        store(lanes_[lane] + c, first ? total : load<f64x>(lanes_[lane] + c) + total);
      }
    }
  }

  // Lane j takes in lane j + 32, then j + 16, ...
  f64x combined(std::int64_t c, std::int64_t used, bool from_lanes) const {
    return from_lanes
               ? combined(used, [&](std::int64_t j)
                                    DMLOPS_LAMBDA_INLINE { return load<f64x>(lanes_[j] + c); })
               : combined(used, [&](std::int64_t j)
                                    DMLOPS_LAMBDA_INLINE { return to_double(sums_[j] + c); });
  }
  template <class Lanes>
  static f64x combined(std::int64_t used, const Lanes& lane) {
    constexpr std::int64_t half_of_lanes = kSumLanes / 2;
    f64x partial[half_of_lanes];
    const std::int64_t pairs = used - half_of_lanes;
    for (std::int64_t j = 0; j < pairs; ++j) partial[j] = lane(j) + lane(j + half_of_lanes);
    for (std::int64_t j = pairs > 0 ? pairs : 0; j < least(half_of_lanes, used); ++j) {
      partial[j] = lane(j);
    }
    for (std::int64_t half = half_of_lanes / 2; half > 0; half /= 2) {
      const std::int64_t both = least(half, used - half);
      for (std::int64_t j = 0; j < both; ++j) partial[j] += partial[j + half];
    }
    return partial[0];
  }

  alignas(kVectorBytes) std::int32_t maxima_[kColumns];
  // Of the current steps; a short group's terms themselves.
  alignas(kVectorBytes) float sums_[kSumLanes][kColumns];
  alignas(kVectorBytes) float lost_[kSumLanes][kColumns];
  alignas(kVectorBytes) double lanes_[kSumLanes][kColumns];  // of the steps before
};

template <class T>
void log_softmax_down_columns(const Groups& groups, const GroupShape& in, const GroupShape& out) {
  ColumnBlock<T> block(groups, in, out);
  ColumnSums<T> sums;
  Subtrahends<T, kColumns> subtrahends;
  for (std::int64_t g = 0; g < groups.count; g += kColumns) {
    block.select(g, least(kColumns, groups.count - g));
    for (float& max : subtrahends.max) max = negative_infinity<float>();
    for (std::int64_t b = 0; b < block.blocks(); ++b) {
      const T* x = block.load(b);
      const std::int64_t rows = block.rows(b);
      for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        f32x top = load<f32x>(subtrahends.max + c);
        for (std::int64_t r = 0; r < rows; ++r) {
          top = running_max(top, load<f32x>(x + r * kColumns + c));
        }
        store(subtrahends.max + c, top);
      });
    }
    sums.add_up(block, subtrahends);
    subtrahends.compute(block.columns());
    for (std::int64_t b = 0; b < block.blocks(); ++b) {
      const T* x = block.load(b);
      T* y = block.results();
      const std::int64_t end = block.rows(b) * kColumns;
      for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const f32x high = load<f32x>(subtrahends.high + c), low = load<f32x>(subtrahends.low + c);
        for (std::int64_t i = c; i < end; i += kColumns) {
          store(y + i, log_softmax_result<T>(load<f32x>(x + i), high, low));
        }
      });
      block.store(b);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
