// log_softmax down columns: neighbours in memory belong to different groups, and a lane of all
// their sums is a row of an array.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kColumns = 64;

template <class T>
DMLOPS_INLINE f32x load_columns(const char* row, std::int64_t column, std::int64_t columns) {
  const T* source = reinterpret_cast<const T*>(row) + column;
  if (columns - column >= kLanes<f32x>) return load<f32x>(source);
  return load_partial<f32x>(source, static_cast<std::size_t>(columns - column));
}

struct ColumnSums {
  alignas(kVectorBytes) double maxima[kColumns] = {};
  alignas(kVectorBytes) float sums[kSumLanes][kColumns];    // of the current block
  alignas(kVectorBytes) double lanes[kSumLanes][kColumns];  // of the blocks before it
  alignas(kVectorBytes) i32x minus_maxima[kColumns / kLanes<f32x>] = {};

  template <bool kRefined, class T>
  void add(const char* input, const GroupShape& in, std::int64_t columns, const float* max) {
    const std::int64_t rows = in.count();
    in.for_each_element([&](std::int64_t offset, std::int64_t i) DMLOPS_LAMBDA_INLINE {
      const std::int64_t in_block = i % kSumBlock;
      float* const lane = sums[i % kSumLanes];
      for (std::int64_t c = 0; c < columns; c += kLanes<f32x>) {
        const f32x x = load_columns<T>(input + offset, c, columns);
        const f32x e = exp_below<kRefined>(x, load<f32x>(max + c), minus_maxima[c / kLanes<f32x>]);
        store(lane + c, in_block < kSumLanes ? e : load<f32x>(lane + c) + e);
      }
      if (in_block == kSumBlock - 1 || i == rows - 1)
        end_block(i < kSumBlock, least(in_block + 1, kSumLanes), columns);
    });
    for (std::int64_t half = kSumLanes / 2; half > 0; half /= 2) {
      for (std::int64_t j = 0; j < half && j + half < rows; ++j) {
        for (std::int64_t c = 0; c < columns; ++c) lanes[j][c] += lanes[j + half][c];
      }
    }
  }

  // The sum of all but one maximum of a column.
  double rest(std::int64_t column) const {
    return lanes[0][column] * 0x1p-64 + (maxima[column] - 1.0);
  }

 private:
  // Moves the sums of a block, of which the first `used` lanes count, into the double lanes.
  void end_block(bool first_block, std::int64_t used, std::int64_t columns) {
    for (std::int64_t lane = 0; lane < used; ++lane) {
      if (first_block) {
        for (std::int64_t c = 0; c < columns; ++c)
          lanes[lane][c] = static_cast<double>(sums[lane][c]);
      } else {
        add_to_lanes(lanes[lane], sums[lane], columns);
      }
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      maxima[c] -= static_cast<double>(minus_maxima[c / kLanes<f32x>][c % kLanes<f32x>]);
    }
    for (i32x& counts : minus_maxima) counts = i32x{};
  }
};

// ln(1 + rest) of each column.
template <class T>
void log_sums_of_columns(float* log_sum, const char* input, const GroupShape& in,
                         std::int64_t columns, const float* max) {
  ColumnSums sums;
  sums.add<false, T>(input, in, columns, max);
  const double limit = rest_to_refine(in.count());
  alignas(kVectorBytes) double rest[kColumns] = {};
  bool refine = false;
  for (std::int64_t c = 0; c < columns; ++c) {
    rest[c] = sums.rest(c);
    refine = refine || rest[c] < limit;
  }
  if (std::is_same_v<T, float> && refine) {
    ColumnSums refined;
    refined.add<true, T>(input, in, columns, max);
    for (std::int64_t c = 0; c < columns; ++c)
      rest[c] = rest[c] < limit ? refined.rest(c) : rest[c];
  }
  for (std::int64_t c = 0; c < columns; c += kLanes<f64x>) {
    const f32half rounded = __builtin_convertvector(log1p(load<f64x>(rest + c)), f32half);
    std::memcpy(log_sum + c, &rounded, sizeof rounded);
  }
}

// One group a column; the columns are neighbours in input and output.
template <class T>
void log_softmax_down_columns(const char* input, char* output, const GroupShape& in,
                              const GroupShape& out, std::int64_t columns) {
  constexpr std::int64_t lanes = kLanes<f32x>;
  const std::int64_t rows = in.count();
  alignas(kVectorBytes) float max[kColumns];
  alignas(kVectorBytes) float log_sum[kColumns] = {};
  for (float& m : max) m = negative_infinity<float>();
  in.for_each_element([&](std::int64_t offset, std::int64_t) DMLOPS_LAMBDA_INLINE {
    for (std::int64_t c = 0; c < columns; c += lanes) {
      store(max + c, running_max(load<f32x>(max + c), load_columns<T>(input + offset, c, columns)));
    }
  });
  log_sums_of_columns<T>(log_sum, input, in, columns, max);
  // Input and output have the same sizes, so that their runs are the same.
  const std::int64_t in_step = in.strides[in.rank - 1], out_step = out.strides[out.rank - 1];
  in.for_each_run(0, rows, [&](std::int64_t in_offset, std::int64_t first, std::int64_t length) {
    out.for_each_run(first, first + length,
                     [&](std::int64_t out_offset, std::int64_t, std::int64_t) {
                       for (std::int64_t i = 0; i < length; ++i) {
                         const char* x = input + in_offset + i * in_step;
                         T* y = reinterpret_cast<T*>(output + out_offset + i * out_step);
                         for (std::int64_t c = 0; c < columns; c += lanes) {
                           const f32x v = load_columns<T>(x, c, columns);
                           const f32x result =
                               log_softmax_result(v, load<f32x>(max + c), load<f32x>(log_sum + c));
                           if (columns - c >= lanes) {
                             store(y + c, result);
                           } else {
                             store_partial(y + c, result, static_cast<std::size_t>(columns - c));
                           }
                         }
                       }
                     });
  });
}

}  // namespace dmlops::DMLOPS_TARGET
