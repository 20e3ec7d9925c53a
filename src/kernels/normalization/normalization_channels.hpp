// Packed parameters of batch normalization, with their factors.
#pragma once

#include "kernels/blocks/pack.hpp"
#include "kernels/normalization/normalization_factor.hpp"

namespace dmlops::DMLOPS_TARGET {

// Operands after the output and the input.
enum BatchNormalizationOperand { kMean = 2, kVariance, kScale, kBias, kBatchNormalizationEnd };

// The parameters of up to kCapacity elements of a row, or of up to kCapacity rows, in float32.
template <class T>
class Channels {
 public:
  using Factor = NormalizationFactor<T>;

  static constexpr std::int64_t kCapacity = 1024;
  static_assert(kCapacity >= kTable, "output rows with runs of several elements are not split");

  // The parameters of a vector's elements.
  struct Vector {
    f32x mean, bias;
    Factor factor;

    DMLOPS_INLINE f32x normalize(f32x x) const { return factor.times_plus(x - mean, bias); }

    // The first `count` lanes, then those of `next`.
    DMLOPS_INLINE Vector before(std::int64_t count, const Vector& next) const {
      const i32x first = lane_indices() < static_cast<std::int32_t>(count);
      Vector result = {first ? mean : next.mean, first ? bias : next.bias, {}};
#pragma GCC unroll 16
      for (int k = 0; k < Factor::kTerms; ++k)
        result.factor.terms[k] = first ? factor.terms[k] : next.factor.terms[k];
      return result;
    }
  };
  // Loads the parameters from index i of the chosen ones on.
  DMLOPS_INLINE Vector operator[](std::int64_t i) const {
    return vector([i = i + chosen_](const float* values)
                      DMLOPS_LAMBDA_INLINE { return load<f32x>(values + i); });
  }
  // Broadcasts the parameters of index i of the chosen ones.
  DMLOPS_INLINE Vector throughout(std::int64_t i) const {
    return vector([i = i + chosen_](const float* values)
                      DMLOPS_LAMBDA_INLINE { return splat<f32x>(values[i]); });
  }

  // Chooses the packed parameters from index i on.
  void choose(std::int64_t i) { chosen_ = past_ + i; }

  // Packs the parameters of `count` elements of a row from (row, column) on, or of `count` rows.
  // Returns false if any parameter is_extreme(); its factor is then unspecified. If parameters are
  // packed anew, their first one lies `past` elements past an aligned vector.
  bool pack_parameters(const Rows& rows, std::int64_t row, std::int64_t column, std::int64_t count,
                       bool of_rows, std::int64_t past, float epsilon) {
    const char* first[kBatchNormalizationEnd - kMean];
    for (int k = kMean; k < kBatchNormalizationEnd; ++k) first[k - kMean] = row_of(rows, k, row);
    // Rows that begin at one address may differ, since they have no common pitch.
    const std::int64_t first_row = of_rows ? row : 0;
    if (first_row == row_ && column == column_ && count == count_ &&
        std::memcmp(first, first_, sizeof first) == 0)
      return usual_;
    std::memcpy(first_, first, sizeof first);
    row_ = first_row;
    column_ = column;
    count_ = count;
    past_ = past;
    const auto load_operand = [&](float* target, int k) {
      load_floats(target + past,
                  of_rows ? column_of(rows, k, row) : source_of(rows, k, row, column));
    };
    load_operand(mean_, kMean);
    load_operand(variance_, kVariance);
    load_operand(factor_[0], kScale);
    load_operand(bias_, kBias);
    i32x extreme = {};
    const std::int64_t end = past + count;
    for (std::int64_t i = past; i < end; i += kFloatLanes) {
      const f32x scale = load<f32x>(factor_[0] + i), variance = load<f32x>(variance_ + i);
      const f32x epsilons = splat<f32x>(epsilon);
      const auto computed = normalization_factor<T>(scale, variance, epsilons);
      const i32x valid = lane_indices() < static_cast<std::int32_t>(end - i);
      extreme |= valid & is_extreme(scale, variance + epsilons);
#pragma GCC unroll 16
      for (int k = 0; k < Factor::kTerms; ++k) store(factor_[k] + i, computed.terms[k]);
    }
    if (!of_rows) repeat_first();
    usual_ = !any_lane(extreme);
    return usual_;
  }

 private:
  // For whole vectors from any index on.
  static constexpr std::int64_t kPaddedCapacity = kCapacity + 2 * kFloatLanes;

  // Repeats the first parameters after the last one, for vectors that extend into the next row.
  void repeat_first() {
    const auto repeat = [this](float* values) {
      store(values + past_ + count_, load<f32x>(values + past_));
    };
    repeat(mean_);
    repeat(bias_);
    for (float* values : factor_) repeat(values);
  }

  // Fills the last vector, whose unused lanes enter the computation of factors: subnormal numbers
  // are slow.
  void load_floats(float* target, const Source& source) const {
    const std::int64_t last = (count_ - 1) / kFloatLanes * kFloatLanes;
    if constexpr (std::is_same_v<T, float>) {
      store(target + last, splat<f32x>(1.0f));
      pack<std::uint32_t>(reinterpret_cast<char*>(target), 0, count_, 1, source);
    } else {
      alignas(kVectorBytes) float16 halves[kPaddedCapacity];
      store(halves + last, splat<f32x>(1.0f));
      pack<std::uint16_t>(reinterpret_cast<char*>(halves), 0, count_, 1, source);
      for (std::int64_t i = 0; i < count_; i += kFloatLanes)
        store(target + i, load<f32x>(halves + i));
    }
  }

  template <class Get>
  DMLOPS_INLINE Vector vector(const Get& get) const {
    Vector result = {get(mean_), get(bias_), {}};
#pragma GCC unroll 16
    for (int k = 0; k < Factor::kTerms; ++k) result.factor.terms[k] = get(factor_[k]);
    return result;
  }

  // The key of the packed parameters: the addresses of their first row, its index if they are those
  // of rows, the column, the count.
  const char* first_[kBatchNormalizationEnd - kMean] = {};
  std::int64_t row_ = 0, column_ = 0, count_ = 0;
  std::int64_t past_ = 0, chosen_ = 0;
  bool usual_ = true;  // false if any parameter is extreme
  alignas(kVectorBytes) float mean_[kPaddedCapacity];
  alignas(kVectorBytes) float variance_[kPaddedCapacity];
  alignas(kVectorBytes) float factor_[Factor::kTerms][kPaddedCapacity];
  alignas(kVectorBytes) float bias_[kPaddedCapacity];
};

}  // namespace dmlops::DMLOPS_TARGET
