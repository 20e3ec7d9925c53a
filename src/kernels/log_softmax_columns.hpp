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

// Of bits of columns, the bits of the first lanes of those vectors that hold one.
inline std::uint64_t first_of_vectors(std::uint64_t bits) {
  constexpr std::uint64_t kVector = (std::uint64_t{1} << kLanes<f32x>)-1;
  std::uint64_t result = 0;
  for (int c = 0; c < kColumns; c += kLanes<f32x>) {
    result |= std::uint64_t{(bits >> c & kVector) != 0} << c;
  }
  return result;
}

// All of them in a lane each.
struct ColumnSums {
  alignas(kVectorBytes) double maxima[kColumns];
  alignas(kVectorBytes) float sums[kSumLanes][kColumns];  // of the current steps
  alignas(
      kVectorBytes) double lanes[kSumLanes][kColumns];  // of those before; not used by short groups

  // Adds the elements of those vectors of columns whose first lane's bit is set in `wanted`.
  template <bool kRefined, class T>
  void add(ColumnBlock<T>& block, const float* max, std::uint64_t wanted) {
    constexpr std::int64_t kSteps = kSumSteps<kRefined>;
    const std::int64_t blocks = block.blocks(), columns = block.columns();
    for (double& counted : maxima) counted = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const T* x = block.load(b);
      const std::int64_t rows = block.rows(b), step = b % kSteps;
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        if ((wanted >> c & 1) == 0) return;
        const f32x top = load<f32x>(max + c);
        i32x minus_maxima = {};
        for (std::int64_t r = 0; r < rows; ++r) {
          const f32x e = exp_below<kRefined>(load<f32x>(x + r * kColumns + c), top, minus_maxima);
          store(sums[r] + c, step == 0 ? e : load<f32x>(sums[r] + c) + e);
        }
        for (int k = 0; k < kLanes<f32x>; ++k)
          maxima[c + k] -= static_cast<double>(minus_maxima[k]);
      });
      if (blocks > kSteps && (step == kSteps - 1 || b == blocks - 1)) {
        move_to_lanes(b < kSteps, step == 0 ? rows : kSumLanes, columns);
      }
    }
    const std::int64_t used = blocks == 1 ? block.rows(0) : kSumLanes;
    for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) combine(c, used, blocks > kSteps);
  }

  // The sum of all but one maximum of each column, from column c on.
  f64x rest(std::int64_t c) const {
    return load<f64x>(totals_ + c) * 0x1p-64 + (load<f64x>(maxima + c) - 1.0);
  }

 private:
  // The first `used` lanes count: a last block can be short.
  void move_to_lanes(bool first, std::int64_t used, std::int64_t columns) {
    for (std::int64_t lane = 0; lane < used; ++lane) {
      for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
        const f64x sum = to_double(sums[lane] + c);
        store(lanes[lane] + c, first ? sum : load<f64x>(lanes[lane] + c) + sum);
      }
    }
  }

  // Lane j takes in lane j + 32, then j + 16, ...
  void combine(std::int64_t c, std::int64_t used, bool from_lanes) {
    const auto lane = [&](std::int64_t j) DMLOPS_LAMBDA_INLINE {
      return from_lanes ? load<f64x>(lanes[j] + c) : to_double(sums[j] + c);
    };
    constexpr std::int64_t half_of_lanes = kSumLanes / 2;
    f64x partial[half_of_lanes];
    for (std::int64_t j = 0; j < least(half_of_lanes, used); ++j) {
      partial[j] = j + half_of_lanes < used ? lane(j) + lane(j + half_of_lanes) : lane(j);
    }
    for (std::int64_t half = half_of_lanes / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half && j + half < used; ++j) partial[j] += partial[j + half];
    }
    store(totals_ + c, partial[0]);
  }

  alignas(kVectorBytes) double totals_[kColumns];
};

// From the sums of all columns.
template <class T>
void set_subtrahends(Subtrahends<T, kColumns>& subtrahends, ColumnSums& sums, ColumnBlock<T>& block,
                     std::int64_t count, const float* max) {
  const std::int64_t columns = block.columns();
  alignas(kVectorBytes) double rest[kColumns];
  const auto sum = [&](auto refined, std::uint64_t wanted) {
    sums.add<decltype(refined)::value>(block, max, wanted);
    for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) store(rest + c, sums.rest(c));
  };
  if (refines_at_once<T>(count)) {
    sum(std::true_type(), ~std::uint64_t{0});
  } else {
    sum(std::false_type(), ~std::uint64_t{0});
    double coarse[kColumns];
    std::uint64_t refined = 0;  // a bit for each column
    for (std::int64_t c = 0; c < columns; ++c) {
      coarse[c] = rest[c];
      refined |= std::uint64_t{refines_later<T>(count, rest[c])} << c;
    }
    if (refined != 0) {
      sum(std::true_type(), first_of_vectors(refined));
      for (std::int64_t c = 0; c < columns; ++c) {
        if ((refined >> c & 1) == 0) rest[c] = coarse[c];
      }
    }
  }
  subtrahends.set(max, rest, columns);
}

template <class T>
void log_softmax_down_columns(const Groups& groups, const GroupShape& in, const GroupShape& out) {
  ColumnBlock<T> block(groups, in, out);
  ColumnSums sums;
  alignas(kVectorBytes) float max[kColumns];
  Subtrahends<T, kColumns> subtrahends;
  for (std::int64_t g = 0; g < groups.count; g += kColumns) {
    block.select(g, least(kColumns, groups.count - g));
    for (float& m : max) m = negative_infinity<float>();
    for (std::int64_t b = 0; b < block.blocks(); ++b) {
      const T* x = block.load(b);
      for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        f32x top = load<f32x>(max + c);
        for (std::int64_t r = 0; r < block.rows(b); ++r)
          top = running_max(top, load<f32x>(x + r * kColumns + c));
        store(max + c, top);
      });
    }
    set_subtrahends(subtrahends, sums, block, in.count(), max);
    for (std::int64_t b = 0; b < block.blocks(); ++b) {
      const T* x = block.load(b);
      T* y = block.results();
      for_each_vector(block.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const f32x high = load<f32x>(subtrahends.high + c), low = load<f32x>(subtrahends.low + c);
        for (std::int64_t i = c; i < block.rows(b) * kColumns; i += kColumns) {
          store(y + i, log_softmax_result<T>(load<f32x>(x + i), high, low));
        }
      });
      block.store(b);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
