// Batch normalization: Act((x - Mean) * factor + Bias), factor = Scale / sqrt(Variance + Epsilon).
#pragma once

#include "kernels/normalization_factor.hpp"
#include "kernels/tile.hpp"

namespace dmlops::DMLOPS_TARGET {

// The operands after the output and the input.
enum BatchNormalizationOperand { kMean = 2, kVariance, kScale, kBias, kBatchNormalizationEnd };

// The parameters of up to kCapacity neighbours, along a row or down a column, as float32.
struct Channels {
  static constexpr std::int64_t kCapacity = 1024;
  alignas(kVectorBytes) float mean[kCapacity];
  alignas(kVectorBytes) float factor[kCapacity];
  alignas(kVectorBytes) float bias[kCapacity];
};

template <class T>
void load_floats(float* target, std::int64_t count, const char* source, std::int64_t step) {
  if constexpr (std::is_same_v<T, float>) {
    pack_row<std::uint32_t>(target, count, source, step);
  } else {
    alignas(kVectorBytes) float16 halves[Channels::kCapacity];
    pack_row<std::uint16_t>(halves, count, source, step);
    for (std::int64_t i = 0; i < count; i += kLanes<f32x>)
      store(target + i, load<f32x>(halves + i));
  }
}

// Reads the parameters of `count` neighbours, along the row or down the column from (row, column).
template <class T>
void prepare(Channels& channels, std::int64_t count, const Rows& rows, std::int64_t row,
             std::int64_t column, bool down, float epsilon) {
  alignas(kVectorBytes) float variance[Channels::kCapacity];
  const auto load_operand = [&](float* target, int k) {
    const char* source = rows.data[k] + row * rows.pitch[k] + column * rows.step[k];
    load_floats<T>(target, count, source, down ? rows.pitch[k] : rows.step[k]);
  };
  load_operand(channels.mean, kMean);
  load_operand(variance, kVariance);
  load_operand(channels.factor, kScale);
  load_operand(channels.bias, kBias);
  for (std::int64_t i = 0; i < count; i += kLanes<f32x>) {
    store(channels.factor + i,
          normalization_factor(load<f32x>(channels.factor + i), load<f32x>(variance + i),
                               splat<f32x>(epsilon)));
  }
}

// One row with the same parameters throughout (those at `index`).
template <class T, class Act>
DMLOPS_INLINE void normalize_constant(T* output, const T* input, std::int64_t length,
                                      const Channels& channels, std::int64_t index,
                                      const Act& act) {
  const f32x mean = splat<f32x>(channels.mean[index]), bias = splat<f32x>(channels.bias[index]);
  const f32x factor = splat<f32x>(channels.factor[index]);
  stream<f32x, 1>(output, input, length, [&](f32x x, std::int64_t) DMLOPS_LAMBDA_INLINE {
    return canonical_nan(act(fma(x - mean, factor, bias)));
  });
}

// One row with parameters of its own for each element.
template <class T, class Act>
DMLOPS_INLINE void normalize_varying(T* output, const T* input, std::int64_t length,
                                     const Channels& channels, const Act& act) {
  stream<f32x, 1>(output, input, length, [&](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
    const f32x mean = load<f32x>(channels.mean + i), bias = load<f32x>(channels.bias + i);
    return canonical_nan(act(fma(x - mean, load<f32x>(channels.factor + i), bias)));
  });
}

// One row, of a vector's length at least, with parameters of its own that lie dense and that no
// other row shares: straight from memory.
template <class T, class Act>
DMLOPS_INLINE void normalize_dense(T* output, const T* input, std::int64_t length, const Rows& rows,
                                   std::int64_t row, std::int64_t column, float epsilon,
                                   const Act& act) {
  const auto operand = [&](int k) {
    return reinterpret_cast<const T*>(rows.data[k] + row * rows.pitch[k]) + column;
  };
  const T *const mean = operand(kMean), *const variance = operand(kVariance);
  const T *const scale = operand(kScale), *const bias = operand(kBias);
  const f32x epsilons = splat<f32x>(epsilon);
  stream<f32x, 1>(output, input, length, [&](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
    const f32x factor =
        normalization_factor(load<f32x>(scale + i), load<f32x>(variance + i), epsilons);
    return canonical_nan(act(fma(x - load<f32x>(mean + i), factor, load<f32x>(bias + i))));
  });
}

// Repeats the first `length` parameters until there are `total`.
inline void repeat(Channels& channels, std::int64_t length, std::int64_t total) {
  float* const parameters[] = {channels.mean, channels.factor, channels.bias};
  for (float* values : parameters) {
    for (std::int64_t i = length; i < total; ++i) values[i] = values[i - length];
  }
}

template <class T, class Act>
void batch_normalization(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const BatchNormalizationParameters*>(parameters);
  const Act act(p.activation);
  bool along = false, across = false;  // do parameters change along a row, or from row to row?
  bool dense = true;                   // do all change from each element of a row to the next?
  for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
    along = along || (rows.length > 1 && rows.step[k] != 0);
    across = across || (rows.count > 1 && rows.pitch[k] != 0);
    dense = dense && rows.step[k] == sizeof(T);
  }
  Channels channels;

  for_each_tile<T>(rows, [&](const Tile<T>& tile) DMLOPS_LAMBDA_INLINE {
    if (!along) {
      const std::int64_t group = across ? Channels::kCapacity : tile.count;
      for (std::int64_t first = 0; first < tile.count; first += group) {
        const std::int64_t end = least(first + group, tile.count);
        prepare<T>(channels, across ? end - first : 1, rows, tile.row + first, tile.column, true,
                   p.epsilon);
        for (std::int64_t r = first; r < end; ++r) {
          normalize_constant(tile.output_row(r), tile.input_row(r), tile.length, channels,
                             across ? r - first : 0, act);
        }
      }
      return;
    }
    if (dense && (across || tile.count == 1) && tile.length >= kLanes<f32x>) {
      for (std::int64_t r = 0; r < tile.count; ++r) {
        normalize_dense(tile.output_row(r), tile.input_row(r), tile.length, rows, tile.row + r,
                        tile.column, p.epsilon, act);
      }
      return;
    }
    // Short rows that follow one another, as pixels of a few channels, are one long row with
    // repeated parameters.
    const bool repeated =
        !across && tile.count > 1 && tile.contiguous() && tile.length <= Channels::kCapacity / 2;
    const std::int64_t length = repeated ? tile.length * tile.count : tile.length;
    const std::int64_t count = repeated ? 1 : tile.count;
    const std::int64_t group =
        repeated ? tile.length * (Channels::kCapacity / tile.length) : Channels::kCapacity;
    if (repeated) {
      prepare<T>(channels, tile.length, rows, tile.row, tile.column, false, p.epsilon);
      repeat(channels, tile.length, least(group, length));
    }
    for (std::int64_t column = 0; column < length; column += group) {
      const std::int64_t part = least(group, length - column);
      for (std::int64_t r = 0; r < count; ++r) {
        if (!repeated && (across || r == 0)) {
          prepare<T>(channels, part, rows, tile.row + r, tile.column + column, false, p.epsilon);
        }
        normalize_varying(tile.output_row(r) + column, tile.input_row(r) + column, part, channels,
                          act);
      }
    }
  });
}

}  // namespace dmlops::DMLOPS_TARGET
