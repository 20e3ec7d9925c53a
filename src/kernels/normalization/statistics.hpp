// Normalization by the moments of the input itself, and the gradients of batch normalization.
//
// Sums are float64, and for float16 elements float32 within a block. One sweep adds up elements and
// exact products. A second one adds up the deviations from the mean only if the mean is far from 0,
// where the variance would lose digits as the difference of two sums.
#pragma once

#include "kernels/blocks/group_sum.hpp"
#include "kernels/blocks/group_tiles.hpp"

namespace dmlops::DMLOPS_TARGET {

DMLOPS_INLINE double square_root(double x) { return sqrt(splat<f64x>(x))[0]; }

template <class T>
DMLOPS_INLINE double load_number(const char* place) {
  return static_cast<double>(load_partial<f32x>(reinterpret_cast<const T*>(place), 1)[0]);
}
template <class T>
DMLOPS_INLINE void store_number(char* place, double value) {
  store_partial(reinterpret_cast<T*>(place), canonical_nan(rounded(to_doubles(value))), 1);
}

// Vectors of sums, and of results where the mean is far from 0.
template <class T>
struct Wide {
  using Vector = Doubles;

  DMLOPS_INLINE static Vector load(const T* row, std::int64_t i, std::int64_t used) {
    if (used == kLanes<f32x>) return load_doubles(row + i);
    return to_double(load_elements(row, i, used));
  }
  DMLOPS_INLINE static Vector of(double value) { return to_doubles(value); }
  DMLOPS_INLINE static f32x rounded(Vector v) { return DMLOPS_TARGET::rounded(v); }

  // x - value
  struct Minus {
    Vector value;

    explicit Minus(double number) : value(of(number)) {}
    DMLOPS_INLINE Vector operator()(Vector x) const { return x - value; }
  };
};

// Float32's range holds every product of float16 numbers, deviations and their inverses that does
// not overflow float16 in the end.
template <>
struct Wide<float16> {
  using Vector = f32x;

  DMLOPS_INLINE static Vector load(const float16* row, std::int64_t i, std::int64_t used) {
    return load_elements(row, i, used);
  }
  DMLOPS_INLINE static Vector of(double value) { return splat<f32x>(static_cast<float>(value)); }
  DMLOPS_INLINE static f32x rounded(Vector v) { return v; }

  // The difference to the rounded value is exact where it is small.
  struct Minus {
    FloatPair value;

    explicit Minus(double number) : value(number) {}
    DMLOPS_INLINE Vector operator()(Vector x) const { return (x - value.high) - value.low; }
  };
};

// The row of an operand, or the one element that all elements of a group share.
template <class T>
class OperandRow {
 public:
  OperandRow(const GroupTiles<T>& tiles, int operand, std::int64_t k)
      : row_(tiles.row(operand, k)), uniform_(tiles.uniform(operand)) {}

  double number() const { return load_number<T>(reinterpret_cast<const char*>(row_)); }
  DMLOPS_INLINE f32x load(std::int64_t i, std::int64_t used) const {
    if (uniform_) return splat<f32x>(static_cast<float>(number()));
    return load_elements(row_, i, used);
  }
  DMLOPS_INLINE typename Wide<T>::Vector load_wide(std::int64_t i, std::int64_t used) const {
    return uniform_ ? Wide<T>::of(number()) : Wide<T>::load(row_, i, used);
  }

 private:
  const T* row_;
  bool uniform_;
};

// True if a variance loses only a few digits as mean(x^2) - mean^2, and deviations as a x + b.
DMLOPS_INLINE bool is_near_zero(double mean, double variance) {
  return mean * mean <= 16 * variance;
}
// True if both parts of the number as a FloatPair, and their products with elements, are in
// float32's normal range.
DMLOPS_INLINE bool fits_pair(double number) {
  const double size = number < 0 ? -number : number;
  return number == 0 || (size > 0x1p-78 && size < 0x1p100);
}

// Act(scale * (x - mean) / sqrt(variance + epsilon) + bias + added).
template <class T>
class Statistics {
 public:
  static constexpr int kSweeps = 2;
  static constexpr unsigned int kInput = 1u << 1;
  static constexpr unsigned int kReads[] = {
      kInput, kInput,
      kInput | 1u << kStatisticsScale | 1u << kStatisticsBias | 1u << kStatisticsAdded};
  using W = Wide<T>;
  using Vector = typename W::Vector;

  struct State {
    double mean, variance, inverse_deviation;
    bool near_zero;
    GroupSum<2, Vector, 2 * kSumLanes> sums;
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
          1.0 / square_root(state.variance + static_cast<double>(parameters_.epsilon));
    }
    state.sums.clear();
  }

  void report(const State& state, GroupTiles<T>& tiles, std::int64_t k) const {
    if (reduction_.data[kStatisticsMean] != nullptr)
      store_number<T>(tiles.group_operand(kStatisticsMean, k), state.mean);
    if (reduction_.data[kStatisticsVariance] != nullptr)
      store_number<T>(tiles.group_operand(kStatisticsVariance, k), state.variance);
  }

  void finish(const State& state, GroupTiles<T>& tiles, std::int64_t k, T* target, std::int64_t,
              std::int64_t length) const {
    if (parameters_.activation == nullptr) return normalize(state, tiles, k, target, length);
    alignas(kVectorBytes) float normalized[kTileElements];
    normalize(state, tiles, k, normalized, length);
    Rows rows;
    rows.length = length;
    rows.count = 1;
    rows.data[0] = rows.data[1] = reinterpret_cast<char*>(normalized);
    rows.layout[0] = rows.layout[1] = Layout::in_place;
    parameters_.activation(rows, &parameters_.activation_parameters);
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      store_elements(target, i, used, load_elements(normalized, i, used));
    });
  }

 private:
  template <class Out>
  DMLOPS_INLINE void normalize(const State& state, GroupTiles<T>& tiles, std::int64_t k,
                               Out* target, std::int64_t length) const {
    if (tiles.uniform(kStatisticsScale) && tiles.uniform(kStatisticsBias)) {
      normalize_row<true>(state, tiles, k, target, length);
    } else {
      normalize_row<false>(state, tiles, k, target, length);
    }
  }

  // kUniform: a group has one scale and one bias, as it always has where a tensor is added.
  template <bool kUniform, class Out>
  DMLOPS_NO_INLINE void normalize_row(const State& state, GroupTiles<T>& tiles, std::int64_t k,
                                      Out* target, std::int64_t length) const {
    const T* const x = tiles.row(1, k);
    const OperandRow<T> scale(tiles, kStatisticsScale, k), bias(tiles, kStatisticsBias, k);
    const bool adds = reduction_.data[kStatisticsAdded] != nullptr;
    const OperandRow<T> added(tiles, adds ? kStatisticsAdded : 1, k);
    const double factor = state.inverse_deviation * (kUniform ? scale.number() : 1);
    const double addend = (kUniform ? bias.number() : 0) - state.mean * factor;
    if (state.near_zero && fits_pair(factor) && fits_pair(addend)) {
      const FloatPair a(factor), b(addend);
      for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
        const f32x v = load_elements(x, i, used);
        const f32x high = fma(v, a.high, b.high);
        f32x low = fma(v, a.low, b.low), result;
        if constexpr (kUniform) {
          if (adds) low = low + added.load(i, used);
          result = high + low;
        } else {
          const f32x factors = scale.load(i, used);
          result = fma(high, factors, fma(low, factors, bias.load(i, used)));
        }
        store_elements(target, i, used, canonical_nan(result));
      });
      return;
    }
    const typename W::Minus minus_mean(state.mean);
    const Vector inverse = W::of(state.inverse_deviation);
    const Vector group_factor = inverse * W::of(scale.number()), group_bias = W::of(bias.number());
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const Vector d = minus_mean(W::load(x, i, used));
      Vector result = kUniform ? d * group_factor + group_bias
                               : d * (inverse * scale.load_wide(i, used)) + bias.load_wide(i, used);
      if (kUniform && adds) result = result + added.load_wide(i, used);
      store_elements(target, i, used, canonical_nan(W::rounded(result)));
    });
  }

  const Reduction& reduction_;
  const StatisticsParameters& parameters_;
};

// c = the mean of the input (training) or the given mean, d = x - c, i = 1 / sqrt(variance +
// epsilon), and the gradient g of the output give:
//   bias: sum(g); scale: (sum(g d) + (c - given mean) sum(g)) i;
//   input: scale i g, or in training scale i (g - mean(g) - d mean(g d) i^2).
template <class T>
class Gradients {
 public:
  static constexpr int kSweeps = 2;
  static constexpr unsigned int kBoth = 1u << 1 | 1u << kOutputGradient;
  static constexpr unsigned int kReads[] = {kBoth, kBoth, kBoth};
  using W = Wide<T>;
  using Vector = typename W::Vector;

  struct State {
    double center, mean, variance;  // variance: with epsilon
    double factor;                  // scale i
    double mean_gradient, slope;    // slope: mean(g d) i^2
    double scale_gradient, bias_gradient;
    double scale;
    bool near_zero;
    GroupSum<3, Vector, 2 * kSumLanes> sums;
  };

  explicit Gradients(const GradientParameters& parameters) : parameters_(parameters) {}

  DMLOPS_INLINE static bool needs(int s, const State& state) { return state.near_zero == (s == 0); }

  void begin(State& state, GroupTiles<T>& tiles, std::int64_t k) const {
    state.mean = load_number<T>(tiles.group_operand(kGradientMean, k));
    state.center = parameters_.training ? 0 : state.mean;
    state.variance = load_number<T>(tiles.group_operand(kGradientVariance, k)) +
                     static_cast<double>(parameters_.epsilon);
    state.scale = load_number<T>(tiles.group_operand(kGradientScale, k));
    state.near_zero = is_near_zero(state.center, state.variance);
    state.sums.clear();
  }

  static void sweep(int s, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t,
                    std::int64_t length) {
    const T* const x = tiles.row(1, k);
    const OperandRow<T> gradient(tiles, kOutputGradient, k);
    if (s == 0) {
      state.sums.add(length,
                     [&](std::int64_t i, std::int64_t used, Vector* sums) DMLOPS_LAMBDA_INLINE {
                       const Vector v = W::load(x, i, used), g = gradient.load_wide(i, used);
                       sums[0] = sums[0] + v;
                       sums[1] = sums[1] + g;
                       sums[2] = add_exact_product(sums[2], g, v);
                     });
    } else {
      const typename W::Minus minus_center(state.center);
      state.sums.add(length,
                     [&](std::int64_t i, std::int64_t used, Vector* sums) DMLOPS_LAMBDA_INLINE {
                       const Vector d = minus_center(W::load(x, i, used));
                       const Vector g = gradient.load_wide(i, used);
                       sums[0] = sums[0] + d;
                       sums[1] = sums[1] + g;
                       sums[2] = sums[2] + g * d;
                     });
    }
  }

  void end(int s, State& state, std::int64_t count) const {
    const auto elements = static_cast<double>(count);
    const double sum = state.sums.total(1), products = state.sums.total(2);
    // The distance from the origin of the sums to the center.
    double offset = s == 0 ? state.center : 0;
    if (parameters_.training) {
      offset = state.sums.total(0) / elements;
      state.center += offset;
    }
    state.near_zero = s == 0 && is_near_zero(state.center, state.variance);
    const double inverse = 1.0 / square_root(state.variance);
    const double product = products - offset * sum;
    state.factor = state.scale * inverse;
    state.mean_gradient = sum / elements;
    state.slope = product / elements / state.variance;
    state.scale_gradient =
        (parameters_.training ? product + (state.center - state.mean) * sum : product) * inverse;
    state.bias_gradient = sum;
    state.sums.clear();
  }

  static void report(const State& state, GroupTiles<T>& tiles, std::int64_t k) {
    store_number<T>(tiles.group_operand(kScaleGradient, k), state.scale_gradient);
    store_number<T>(tiles.group_operand(kBiasGradient, k), state.bias_gradient);
  }

  void finish(const State& state, GroupTiles<T>& tiles, std::int64_t k, T* target, std::int64_t,
              std::int64_t length) const {
    const T* const x = tiles.row(1, k);
    const OperandRow<T> gradient(tiles, kOutputGradient, k);
    const bool training = parameters_.training;
    const double of_input = -state.factor * state.slope;
    const double addend = state.factor * (state.center * state.slope - state.mean_gradient);
    if (training && state.near_zero && fits_pair(state.factor) && fits_pair(of_input) &&
        fits_pair(addend)) {
      const FloatPair a(state.factor), b(of_input), c(addend);
      for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
        const f32x v = load_elements(x, i, used), g = gradient.load(i, used);
        const f32x low = fma(g, a.low, fma(v, b.low, c.low));
        const f32x result = fma(g, a.high, fma(v, b.high, c.high)) + low;
        store_elements(target, i, used, canonical_nan(result));
      });
      return;
    }
    const typename W::Minus minus_center(state.center), minus_mean(state.mean_gradient);
    const Vector factor = W::of(state.factor), slope = W::of(state.slope);
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      Vector g = gradient.load_wide(i, used);
      if (training) g = minus_mean(g) - minus_center(W::load(x, i, used)) * slope;
      store_elements(target, i, used, canonical_nan(W::rounded(g * factor)));
    });
  }

 private:
  const GradientParameters& parameters_;
};

template <class T>
void statistics(const Reduction& reduction, const void* parameters) {
  Statistics<T> formula(reduction, *static_cast<const StatisticsParameters*>(parameters));
  reduce_groups<T>(reduction, formula);
}

template <class T>
void gradients(const Reduction& reduction, const void* parameters) {
  Gradients<T> formula(*static_cast<const GradientParameters*>(parameters));
  reduce_groups<T>(reduction, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
