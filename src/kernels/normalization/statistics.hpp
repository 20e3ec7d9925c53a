// Normalization with the input's mean and variance.
#pragma once

#include "kernels/normalization/moments.hpp"

namespace dmlops::DMLOPS_TARGET {

// Act(scale * (x - mean) / sqrt(variance + epsilon) + bias + added).
template <class T>
class Statistics {
 public:
  static constexpr int kSweeps = 2;
  static constexpr bool kHasSums = true;
  static constexpr unsigned int kInput = 1u << 1;
  static constexpr unsigned int kReads[] = {
      kInput, kInput,
      kInput | 1u << kStatisticsScale | 1u << kStatisticsBias | 1u << kStatisticsAdded};
  using W = Wide<T>;
  using Vector = typename W::Vector;

  struct State {
    double mean, variance, inverse_deviation;
    bool near_zero;
    GroupSum<2, Vector> sums;
  };

  Statistics(const Reduction& reduction, const StatisticsParameters& parameters)
      : reduction_(reduction), parameters_(parameters) {}

  DMLOPS_INLINE bool needs(int s, const State& state) const {
    return s == 0 ? parameters_.use_mean || parameters_.use_variance : !state.near_zero;
  }
  static void begin(State& state, GroupTiles<T>&, std::int64_t) {
    state.mean = state.variance = 0;
    state.inverse_deviation = 1;
    state.near_zero = true;
    state.sums.clear();
  }

  static void sweep(int s, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t,
                    std::int64_t length) {
    const T* const x = tiles.row(1, k);
    if (s == 0) {
      state.sums.add(length,
                     [&](std::int64_t i, std::int64_t used, Vector* sums) DMLOPS_LAMBDA_INLINE {
                       const Vector v = W::load(x, i, used);
                       sums[0] = sums[0] + v;
                       sums[1] = add_exact_product(sums[1], v, v);
                     });
    } else {
      const typename W::Minus minus_mean(state.mean);
      state.sums.add(length,
                     [&](std::int64_t i, std::int64_t used, Vector* sums) DMLOPS_LAMBDA_INLINE {
                       const Vector d = minus_mean(W::load(x, i, used));
                       sums[0] = sums[0] + d;
                       sums[1] = sums[1] + d * d;
                     });
    }
  }

  void end(int s, State& state, std::int64_t count) const {
    const auto elements = static_cast<double>(count);
    const double offset = parameters_.use_mean ? state.sums.total(0) / elements : 0;
    const double variance = state.sums.total(1) / elements - offset * offset;
    state.mean += offset;
    state.variance = variance < 0 ? 0 : variance;
    state.near_zero = s == 0 && is_near_zero(state.mean, variance);
    if (parameters_.use_variance) {
      state.inverse_deviation =
          1.0 / __builtin_sqrt(state.variance + static_cast<double>(parameters_.epsilon));
    }
    state.sums.clear();
  }

  void report(const State& state, GroupTiles<T>& tiles, std::int64_t k) const {
    if (reduction_.data[kStatisticsMean] != nullptr)
      store_number<T>(tiles.group_operand(kStatisticsMean, k), state.mean);
    if (reduction_.data[kStatisticsVariance] != nullptr)
      store_number<T>(tiles.group_operand(kStatisticsVariance, k), state.variance);
  }

  void finish(const State& state, GroupTiles<T>& tiles, std::int64_t k, T* target,
              std::int64_t begin, std::int64_t length) {
    if (parameters_.activation == nullptr) return normalize(state, tiles, k, target, begin, length);
    alignas(kVectorBytes) float normalized[kTileElements];
    normalize(state, tiles, k, normalized, begin, length);
    Rows rows;
    rows.length = length;
    rows.count = 1;
    rows.data[0] = rows.data[1] = reinterpret_cast<char*>(normalized);
    rows.layout[0] = rows.layout[1] = Layout::in_place;
    parameters_.activation(rows, &parameters_.activation_parameters);
    store_row(target, length, tiles.streams(),
              [&](std::int64_t i, std::int64_t used)
                  DMLOPS_LAMBDA_INLINE { return load_elements(normalized, i, used); });
  }

 private:
  // A row in float32. A float16 row that all groups share is converted once.
  class Widened {
   public:
    DMLOPS_INLINE OperandRow<float> row(const GroupTiles<T>& tiles, int operand, std::int64_t k,
                                        std::int64_t begin, std::int64_t length) {
      const T* const row = tiles.row(operand, k);
      const bool uniform = tiles.uniform(operand);
      if constexpr (std::is_same_v<T, float>) return {row, uniform};
      if (!tiles.shared(operand) || begin != begin_) {
        for_each_vector_of_row(uniform ? 1 : length,
                               [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                                 store(row_ + i, load_elements(row, i, used));
                               });
      }
      begin_ = begin;
      return {row_, uniform};
    }

   private:
    std::int64_t begin_ = -1;  // first element of the tile that the row holds
    alignas(kVectorBytes) float row_[std::is_same_v<T, float> ? kLanes<f32x> : kTileElements];
  };

  template <class Out>
  DMLOPS_INLINE void normalize(const State& state, GroupTiles<T>& tiles, std::int64_t k,
                               Out* target, std::int64_t begin, std::int64_t length) {
    const auto scale = scale_.row(tiles, kStatisticsScale, k, begin, length);
    const auto bias = bias_.row(tiles, kStatisticsBias, k, begin, length);
    if (parameters_.per_group) {
      normalize_row<true>(state, tiles, k, scale, bias, target, length);
    } else {
      normalize_row<false>(state, tiles, k, scale, bias, target, length);
    }
  }

  // kPerGroup: scale and bias have one element for each group, as always with a fused add.
  template <bool kPerGroup, class Out>
  DMLOPS_NO_INLINE void normalize_row(const State& state, GroupTiles<T>& tiles, std::int64_t k,
                                      OperandRow<float> scale, OperandRow<float> bias, Out* target,
                                      std::int64_t length) const {
    const T* const x = tiles.row(1, k);
    const bool adds = reduction_.data[kStatisticsAdded] != nullptr;
    const bool streaming = parameters_.activation == nullptr && tiles.streams();
    const OperandRow<T> added(tiles, adds ? kStatisticsAdded : 1, k);
    const double factor = state.inverse_deviation * (kPerGroup ? scale.number() : 1);
    const double addend = (kPerGroup ? bias.number() : 0) - state.mean * factor;
    if (state.near_zero && fits_pair(factor) && fits_pair(addend)) {
      const FloatPair a(factor), b(addend);
      store_row(target, length, streaming,
                [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                  const f32x v = load_elements(x, i, used);
                  const f32x high = fma(v, a.high, b.high);
                  f32x low = fma(v, a.low, b.low), result;
                  if constexpr (kPerGroup) {
                    if (adds) low = low + added.load(i, used);
                    result = high + low;
                  } else {
                    const f32x factors = scale.load(i, used);
                    result = fma(high, factors, fma(low, factors, bias.load(i, used)));
                  }
                  return canonical_nan(result);
                });
      return;
    }
    const typename W::Minus minus_mean(state.mean);
    const Vector inverse = W::of(state.inverse_deviation);
    const Vector group_factor = inverse * W::of(scale.number()), group_bias = W::of(bias.number());
    store_row(
        target, length, streaming, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
          const Vector d = minus_mean(W::load(x, i, used));
          Vector result =
              kPerGroup ? d * group_factor + group_bias
                        : d * (inverse * W::of(scale.load(i, used))) + W::of(bias.load(i, used));
          if (kPerGroup && adds) result = result + added.load_wide(i, used);
          return canonical_nan(W::rounded(result));
        });
  }

  const Reduction& reduction_;
  const StatisticsParameters& parameters_;
  Widened scale_, bias_;
};

template <class T>
void statistics(const Reduction& reduction, const void* parameters) {
  Statistics<T> formula(reduction, *static_cast<const StatisticsParameters*>(parameters));
  reduce_groups<T>(reduction, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
