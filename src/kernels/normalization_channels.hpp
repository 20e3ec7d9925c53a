// The parameters of batch normalization: factors made of them, for many elements.
#pragma once

#include "kernels/normalization_factor.hpp"
#include "kernels/tile.hpp"

namespace dmlops::DMLOPS_TARGET {

// The operands after the output and the input.
enum BatchNormalizationOperand { kMean = 2, kVariance, kScale, kBias, kBatchNormalizationEnd };

// The parameters of up to kCapacity neighbours, along a row or down a column, as float32.
template <class T>
struct Channels {
  using Factor = NormalizationFactor<T>;

  static constexpr std::int64_t kCapacity = 1024;
  // A vector may begin at the last one, of those that are left behind the first line of float16.
  static constexpr std::int64_t kOverlap = kLineBytes / sizeof(float16) + kLanes<f32x>;
  static constexpr std::int64_t kRoom = kCapacity + kOverlap;
  alignas(kVectorBytes) float mean[kRoom];
  alignas(kVectorBytes) float factor[Factor::kParts][kRoom];
  alignas(kVectorBytes) float bias[kRoom];

  // Those of a vector's elements.
  struct Vector {
    f32x mean, bias;
    Factor factor;

    DMLOPS_INLINE f32x normalize(f32x x) const { return factor.times_plus(x - mean, bias); }

    // Those of the lanes from `lane` on.
    DMLOPS_INLINE void take_from(const Vector& other, std::int64_t lane) {
      const i32x mine = lane_indices() < static_cast<std::int32_t>(lane);
      mean = mine ? mean : other.mean;
      bias = mine ? bias : other.bias;
      for (int k = 0; k < Factor::kParts; ++k)
        factor.parts[k] = mine ? factor.parts[k] : other.factor.parts[k];
    }
  };
  // Calls visit(values) for each array.
  template <class Visit>
  void for_each(const Visit& visit) {
    visit(mean);
    for (float* part : factor) visit(part);
    visit(bias);
  }
  // The elements from the i-th on.
  DMLOPS_INLINE Vector operator[](std::int64_t i) const {
    return vector([i](const float* values) DMLOPS_LAMBDA_INLINE { return load<f32x>(values + i); });
  }
  // The i-th element throughout.
  DMLOPS_INLINE Vector throughout(std::int64_t i) const {
    return vector([i](const float* values) DMLOPS_LAMBDA_INLINE { return splat<f32x>(values[i]); });
  }

 private:
  template <class Get>
  DMLOPS_INLINE Vector vector(const Get& get) const {
    Vector result = {get(mean), get(bias), {}};
    for (int k = 0; k < Factor::kParts; ++k) result.factor.parts[k] = get(factor[k]);
    return result;
  }
};

template <class T>
void load_floats(float* target, std::int64_t count, const char* source, std::int64_t step) {
  if constexpr (std::is_same_v<T, float>) {
    pack_row<std::uint32_t>(target, count, source, step);
  } else {
    alignas(kVectorBytes) float16 halves[Channels<T>::kCapacity];
    pack_row<std::uint16_t>(halves, count, source, step);
    for (std::int64_t i = 0; i < count; i += kLanes<f32x>)
      store(target + i, load<f32x>(halves + i));
  }
}

// Reads the parameters of `count` neighbours, along the row or down the column from (row, column).
// Returns false if any of them is_extreme(); its factor is unspecified.
template <class T>
bool prepare(Channels<T>& channels, std::int64_t count, const Rows& rows, std::int64_t row,
             std::int64_t column, bool down, float epsilon) {
  alignas(kVectorBytes) float variance[Channels<T>::kCapacity];
  const auto load_operand = [&](float* target, int k) {
    const char* source = rows.data[k] + row * rows.pitch[k] + column * rows.step[k];
    load_floats<T>(target, count, source, down ? rows.pitch[k] : rows.step[k]);
  };
  load_operand(channels.mean, kMean);
  load_operand(variance, kVariance);
  load_operand(channels.factor[0], kScale);
  load_operand(channels.bias, kBias);
  i32x extreme = {};
  for (std::int64_t i = 0; i < count; i += kLanes<f32x>) {
    const f32x scale = load<f32x>(channels.factor[0] + i), epsilons = splat<f32x>(epsilon);
    const f32x variances = load<f32x>(variance + i);
    const auto computed = normalization_factor<T>(scale, variances, epsilons);
    const i32x valid = lane_indices() < static_cast<std::int32_t>(count - i);
    extreme |= valid & is_extreme(scale, variances + epsilons);
    for (int k = 0; k < Channels<T>::Factor::kParts; ++k)
      store(channels.factor[k] + i, computed.parts[k]);
  }
  return !any_bit(bit_cast<u32x>(extreme), ~0u);
}

// Repeats the first `length` parameters until there are `total`.
template <class T>
void repeat(Channels<T>& channels, std::int64_t length, std::int64_t total) {
  channels.for_each([&](float* values) {
    for (std::int64_t done = length; done < total; done *= 2) {
      const auto count = static_cast<std::size_t>(least(done, total - done));
      std::memcpy(values + done, values, count * sizeof(float));
    }
  });
}

// Those of the first `total` from the one at `begin` on, to the front.
template <class T>
void move_to_front(Channels<T>& channels, std::int64_t begin, std::int64_t total) {
  channels.for_each([&](float* values) {
    std::memmove(values, values + begin, static_cast<std::size_t>(total - begin) * sizeof(float));
  });
}

}  // namespace dmlops::DMLOPS_TARGET
