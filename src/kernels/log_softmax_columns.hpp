// log_softmax down columns: many groups at once, each in a lane of its own. A lane of all their
// sums is a row of an array.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kColumns = 64;

// 64 elements of each of up to 64 groups, as dense rows: one row of the sums' lanes. A missing
// column is 0 throughout.
template <class T>
class ColumnBlock {
 public:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kPitch = kColumns * kSize;

  ColumnBlock(const Groups& groups, const GroupShape& in, const GroupShape& out)
      : groups_(groups), in_(in), out_(out), count_(in.count()) {}

  // The groups from `first` on.
  void select(std::int64_t first, std::int64_t columns) {
    input_ = groups_.input + first * groups_.input_step;
    output_ = groups_.output + first * groups_.output_step;
    columns_ = columns;
    loaded_ = -1;
  }

  std::int64_t count() const { return count_; }  // elements in a group
  std::int64_t columns() const { return columns_; }
  std::int64_t blocks() const { return (count_ + kSumLanes - 1) / kSumLanes; }
  std::int64_t rows(std::int64_t block) const {
    return least(kSumLanes, count_ - block * kSumLanes);
  }

  // Elements [64 block, 64 block + rows) of the groups.
  const char* load(std::int64_t block) {
    if (block != loaded_) {
      const std::int64_t begin = block * kSumLanes;
      if (columns_ < kColumns) {
        std::memset(buffer_, 0, static_cast<std::size_t>(rows(block) * kPitch));
      }
      in_.for_each_run(begin, begin + rows(block),
                       [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
                         prefetch_next<0>(input_ + offset, in_.step(), length, groups_.input_step);
                         pack<Bits<T>>(buffer_ + i * kPitch, kPitch, columns_, length,
                                       input_ + offset, groups_.input_step, in_.step());
                       });
      loaded_ = block;
    }
    return buffer_;
  }

  // Calls write(target, pitch, source, rows) for the loaded elements, to write their results into
  // rows as wide as the block's: the output's own, or those of the block, to be moved there.
  template <class Write>
  DMLOPS_INLINE void store_results(std::int64_t block, const Write& write) {
    const std::int64_t begin = block * kSumLanes;
    const bool direct = groups_.output_step == kSize && columns_ % kLanes<f32x> == 0;
    if (!direct) {
      write(buffer_, kPitch, buffer_, rows(block));
      loaded_ = -1;
    }
    out_.for_each_run(begin, begin + rows(block),
                      [&](std::int64_t offset, std::int64_t i, std::int64_t length)
                          DMLOPS_LAMBDA_INLINE {
                            const char* const source = buffer_ + i * kPitch;
                            char* const target = output_ + offset;
                            if (direct) {
                              prefetch_next<1>(target, out_.step(), length, groups_.output_step);
                              write(target, out_.step(), source, length);
                            } else {
                              move(target, source, length);
                            }
                          });
  }

 private:
  // Along the groups or along their elements, whichever are neighbours.
  void move(char* target, const char* source, std::int64_t rows) const {
    if (groups_.output_step == kSize) {
      pack<Bits<T>>(target, out_.step(), columns_, rows, source, kSize, kPitch);
    } else if (out_.step() == kSize) {
      pack<Bits<T>>(target, groups_.output_step, rows, columns_, source, kPitch, kSize);
    } else {
      for (std::int64_t row = 0; row < rows; ++row) {
        unpack<Bits<T>>(target + row * out_.step(), groups_.output_step, 0, source + row * kPitch,
                        columns_, 1);
      }
    }
  }

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
  alignas(kVectorBytes) char buffer_[kSumLanes * kPitch];
};

template <class T>
DMLOPS_INLINE f32x load_columns(const char* rows, std::int64_t row, std::int64_t c) {
  return load<f32x>(reinterpret_cast<const T*>(rows + row * ColumnBlock<T>::kPitch) + c);
}

// Calls visit(c) for the first lane of each vector of columns.
template <class Visit>
DMLOPS_INLINE void for_each_vector(std::int64_t columns, const Visit& visit) {
  for (std::int64_t c = 0; c < columns; c += kLanes<f32x>) visit(c);
}

// The sums of up to 64 groups, and how many of their elements equal the maximum.
template <class T>
class ColumnSums {
 public:
  using Results = Subtrahends<T, kColumns>;

  template <bool kNear>
  void add_up(ColumnBlock<T>& block, Results& results) {
    const std::int64_t columns = block.columns(), blocks = block.blocks();
    const bool one_lane = block.count() < kOneLane;
    for (std::int32_t& counted : others_) counted = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t step = b % kSumSteps, rows = block.rows(b);
      if (one_lane) {
        add_to_lane<kNear>(block.load(b), rows, columns, results);
        move_to_lanes(b == 0, 1, columns);
      } else {
        add_to_lanes<kNear>(block.load(b), rows, columns, results, step == 0);
        if (step == kSumSteps - 1 || b == blocks - 1) {
          move_to_lanes(b < kSumSteps, step == 0 ? rows : kSumLanes, columns);
        }
      }
    }
    for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
      store(results.sum + c, one_lane ? load<f64x>(lanes_[0] + c) : combined(c));
    }
    const i32x count = splat<i32x>(static_cast<std::int32_t>(block.count()));
    for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const i32x maxima = count - load<i32x>(others_ + c);
      store(results.maxima + c, __builtin_convertvector(maxima, f32x));
    });
  }

 private:
  template <bool kNear>
  void add_to_lane(const char* x, std::int64_t rows, std::int64_t columns, const Results& results) {
    for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const Terms<T> terms(load<f32x>(results.max + c));
      LaneSums<T> sums;
      i32x others = load<i32x>(others_ + c);
      for (std::int64_t r = 0; r < rows; ++r) {
        sums += terms.template term<kNear>(load_columns<T>(x, r, c), others);
      }
      sums.store_to(sums_[0] + c);
      store(others_ + c, others);
    });
  }

  // Row r belongs to lane r.
  template <bool kNear>
  void add_to_lanes(const char* x, std::int64_t rows, std::int64_t columns, const Results& results,
                    bool first) {
    for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
      const Terms<T> terms(load<f32x>(results.max + c));
      i32x others = load<i32x>(others_ + c);
      for (std::int64_t r = 0; r < rows; ++r) {
        LaneSums<T> sums;
        if (!first) sums = LaneSums<T>::from(sums_[r] + c);
        sums += terms.template term<kNear>(load_columns<T>(x, r, c), others);
        sums.store_to(sums_[r] + c);
      }
      store(others_ + c, others);
    });
  }

  // The first `used` lanes count: a last block can be short.
  void move_to_lanes(bool first, std::int64_t used, std::int64_t columns) {
    for (std::int64_t lane = 0; lane < used; ++lane) {
      for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
        const f64x sums = to_double(sums_[lane] + c);
        store(lanes_[lane] + c, first ? sums : load<f64x>(lanes_[lane] + c) + sums);
      }
    }
  }

  // Lane j takes in lane j + 32, then j + 16, ...
  f64x combined(std::int64_t c) const {
    constexpr std::int64_t half_of_lanes = kSumLanes / 2;
    f64x partial[half_of_lanes];
    for (std::int64_t j = 0; j < half_of_lanes; ++j) {
      partial[j] = load<f64x>(lanes_[j] + c) + load<f64x>(lanes_[j + half_of_lanes] + c);
    }
    for (std::int64_t half = half_of_lanes / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half; ++j) partial[j] += partial[j + half];
    }
    return partial[0];
  }

  alignas(kVectorBytes) std::int32_t others_[kColumns];
  alignas(kVectorBytes)
      typename LaneSums<T>::Lane sums_[kSumLanes][kColumns];  // of the current steps
  alignas(kVectorBytes) double lanes_[kSumLanes][kColumns];   // of the steps before
};

template <class T>
class ColumnBatch : Batch<ColumnBatch<T>, T, kColumns> {
  using Base = Batch<ColumnBatch<T>, T, kColumns>;
  friend Base;

 public:
  ColumnBatch(const Groups& groups, const GroupShape& in, const GroupShape& out)
      : block_(groups, in, out) {}

  void run(std::int64_t groups) {
    for (std::int64_t first = 0; first < groups; first += kColumns) {
      block_.select(first, least(kColumns, groups - first));
      Base::run(block_.columns());
    }
  }

 private:
  using Base::subtrahends_;

  void find_maxima(Range& all) {
    for (float& max : subtrahends_.max) max = kNegativeInfinity<float>;
    for (std::int64_t b = 0; b < block_.blocks(); ++b) {
      const char* const x = block_.load(b);
      const std::int64_t rows = block_.rows(b);
      for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        Range even, odd;  // two, as each waits for its last operation
        std::int64_t r = 0;
        for (; r + 1 < rows; r += 2) {
          even += load_columns<T>(x, r, c);
          odd += load_columns<T>(x, r + 1, c);
        }
        if (r < rows) even += load_columns<T>(x, r, c);
        even += odd;
        store(subtrahends_.max + c, running_max(load<f32x>(subtrahends_.max + c), even.max));
        all += even;
      });
    }
  }

  template <bool kNear>
  void add_up() {
    sums_.template add_up<kNear>(block_, subtrahends_);
  }

  template <bool kNear>
  void finish() {
    for (std::int64_t b = 0; b < block_.blocks(); ++b) {
      block_.load(b);
      block_.store_results(b, [&](char* target, std::int64_t pitch, const char* source,
                                  std::int64_t rows) DMLOPS_LAMBDA_INLINE {
        for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
          const Difference<T> difference(load<f32x>(subtrahends_.high + c),
                                         load<f32x>(subtrahends_.low + c));
          for (std::int64_t r = 0; r < rows; ++r) {
            store(reinterpret_cast<T*>(target + r * pitch) + c,
                  difference.template of<kNear>(load_columns<T>(source, r, c)));
          }
        });
      });
    }
  }

  ColumnBlock<T> block_;
  ColumnSums<T> sums_;
};

}  // namespace dmlops::DMLOPS_TARGET
