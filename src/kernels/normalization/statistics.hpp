// Normalization by the moments of the input itself, and the gradients of batch normalization.
//
// Sums are float64: means and variances in two sweeps, so that large means lose nothing and no
// variance overflows. Results are computed in float64, or for float16 in float32, and rounded once.
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

template <class T>
DMLOPS_INLINE Doubles load_doubles(const T* row, std::int64_t i, std::int64_t used) {
  if (used == kLanes<f32x>) return load_doubles(row + i);
  return to_double(load_elements(row, i, used));
}

// The arithmetic of an element's result.
template <class T>
struct Wide {
  using Vector = Doubles;

  DMLOPS_INLINE static Vector load(const T* row, std::int64_t i, std::int64_t used) {
    return load_doubles(row, i, used);
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
    Vector high, low;

    explicit Minus(double number) : high(of(number)) {
      const double rest = number - static_cast<double>(high[0]);
      low = of(rest == rest ? rest : 0);  // no NaN where the number is infinite
    }
    DMLOPS_INLINE Vector operator()(Vector x) const { return (x - high) - low; }
  };
};

// Act(scale * (x - mean) / sqrt(variance + epsilon) + bias + added).
template <class T>
class Statistics {
 public:
  static constexpr int kSweeps = 2;
  static constexpr unsigned int kInput = 1u << 1;
  static constexpr unsigned int kReads[] = {
      kInput, kInput,
      kInput | 1u << kStatisticsScale | 1u << kStatisticsBias | 1u << kStatisticsAdded};

  struct State {
    double mean, variance, inverse_deviation;
    GroupSum<1> sum;
  };

  Statistics(const Reduction& reduction, const StatisticsParameters& parameters)
      : reduction_(reduction), parameters_(parameters) {}

  DMLOPS_INLINE bool needs(int s) const {
    return s == 0 ? parameters_.use_mean : parameters_.use_variance;
  }
  static void begin(State& state, GroupTiles<T>&, std::int64_t) {
    state.mean = state.variance = 0;
    state.inverse_deviation = 1;
    state.sum.clear();
  }

  static void sweep(int s, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t,
                    std::int64_t length) {
    const T* const x = tiles.row(1, k);
    if (s == 0) {
      state.sum.add(length, [x](std::int64_t i, std::int64_t used, Doubles* added)
                                DMLOPS_LAMBDA_INLINE { added[0] = load_doubles(x, i, used); });
    } else {
      const Doubles mean = to_doubles(state.mean);
      state.sum.add(length,
                    [&](std::int64_t i, std::int64_t used, Doubles* added) DMLOPS_LAMBDA_INLINE {
                      const Doubles d = load_doubles(x, i, used) - mean;
                      added[0] = d * d;
                    });
    }
  }

  void end(int s, State& state, std::int64_t count) const {
    const double mean = state.sum.total(0) / static_cast<double>(count);
    if (s == 0) {
      state.mean = mean;
    } else {
      state.variance = mean;
      state.inverse_deviation = 1.0 / square_root(mean + static_cast<double>(parameters_.epsilon));
    }
    state.sum.clear();
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

  // kUniform: a group has one scale and one bias. The same operations in the same order either way.
  template <bool kUniform, class Out>
  DMLOPS_NO_INLINE void normalize_row(const State& state, GroupTiles<T>& tiles, std::int64_t k,
                                      Out* target, std::int64_t length) const {
    const T* const x = tiles.row(1, k);
    const T* const scale = tiles.row(kStatisticsScale, k);
    const T* const bias = tiles.row(kStatisticsBias, k);
    const bool adds = reduction_.data[kStatisticsAdded] != nullptr;
    const T* const added = adds ? tiles.row(kStatisticsAdded, k) : nullptr;
    const bool one_added = adds && tiles.uniform(kStatisticsAdded);
    const bool one_scale = tiles.uniform(kStatisticsScale),
               one_bias = tiles.uniform(kStatisticsBias);
    using W = Wide<T>;
    const typename W::Minus minus_mean(state.mean);
    const auto inverse = W::of(state.inverse_deviation);
    const auto number = [](const T* place) {
      return W::of(load_number<T>(reinterpret_cast<const char*>(place)));
    };
    const auto group_scale = one_scale ? number(scale) : W::of(0);
    const auto group_bias = one_bias ? number(bias) : W::of(0);
    const auto group_added = one_added ? number(added) : W::of(0);
    const auto group_factor = inverse * group_scale;
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const auto d = minus_mean(W::load(x, i, used));
      auto factor = group_factor, addend = group_bias;
      if constexpr (!kUniform) {
        if (!one_scale) factor = inverse * W::load(scale, i, used);
        if (!one_bias) addend = W::load(bias, i, used);
      }
      auto result = d * factor + addend;
      if (adds) result = result + (one_added ? group_added : W::load(added, i, used));
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
  static constexpr unsigned int kInput = 1u << 1, kBoth = kInput | 1u << kOutputGradient;
  static constexpr unsigned int kReads[] = {kInput, kBoth, kBoth};

  struct State {
    double center, mean, sum, variance;  // variance: with epsilon
    double factor;                       // scale i
    double mean_gradient, slope;         // slope: mean(g d) i^2
    double scale_gradient, bias_gradient;
    double scale;
    GroupSum<2> sums;
  };

  explicit Gradients(const GradientParameters& parameters) : parameters_(parameters) {}

  DMLOPS_INLINE bool needs(int s) const { return s == 1 || parameters_.training; }

  void begin(State& state, GroupTiles<T>& tiles, std::int64_t k) const {
    state.mean = state.center = load_number<T>(tiles.group_operand(kGradientMean, k));
    state.variance = load_number<T>(tiles.group_operand(kGradientVariance, k)) +
                     static_cast<double>(parameters_.epsilon);
    state.scale = load_number<T>(tiles.group_operand(kGradientScale, k));
    state.sums.clear();
  }

  static void sweep(int s, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t,
                    std::int64_t length) {
    const T* const x = tiles.row(1, k);
    if (s == 0) {
      state.sums.add(length,
                     [x](std::int64_t i, std::int64_t used, Doubles* added) DMLOPS_LAMBDA_INLINE {
                       added[0] = load_doubles(x, i, used);
                       added[1] = to_doubles(0);
                     });
      return;
    }
    const T* const gradient = tiles.row(kOutputGradient, k);
    const bool one = tiles.uniform(kOutputGradient);
    const Doubles center = to_doubles(state.center);
    state.sums.add(length,
                   [&](std::int64_t i, std::int64_t used, Doubles* added) DMLOPS_LAMBDA_INLINE {
                     const Doubles g = load_gradient(gradient, one, i, used);
                     added[0] = g;
                     added[1] = g * (load_doubles(x, i, used) - center);
                   });
  }

  void end(int s, State& state, std::int64_t count) const {
    const auto elements = static_cast<double>(count);
    if (s == 0) {
      state.center = state.sums.total(0) / elements;
      state.sums.clear();
      return;
    }
    const double inverse = 1.0 / square_root(state.variance);
    const double sum = state.sums.total(0), product = state.sums.total(1);
    state.factor = state.scale * inverse;
    state.mean_gradient = sum / elements;
    state.slope = product / elements / state.variance;
    state.scale_gradient =
        (parameters_.training ? product + (state.center - state.mean) * sum : product) * inverse;
    state.bias_gradient = sum;
  }

  static void report(const State& state, GroupTiles<T>& tiles, std::int64_t k) {
    store_number<T>(tiles.group_operand(kScaleGradient, k), state.scale_gradient);
    store_number<T>(tiles.group_operand(kBiasGradient, k), state.bias_gradient);
  }

  void finish(const State& state, GroupTiles<T>& tiles, std::int64_t k, T* target, std::int64_t,
              std::int64_t length) const {
    const T* const x = tiles.row(1, k);
    const T* const gradient = tiles.row(kOutputGradient, k);
    const bool one = tiles.uniform(kOutputGradient), training = parameters_.training;
    using W = Wide<T>;
    const typename W::Minus minus_center(state.center), minus_mean(state.mean_gradient);
    const auto factor = W::of(state.factor), slope = W::of(state.slope);
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      auto g = one ? W::of(load_number<T>(reinterpret_cast<const char*>(gradient)))
                   : W::load(gradient, i, used);
      if (training) g = minus_mean(g) - minus_center(W::load(x, i, used)) * slope;
      store_elements(target, i, used, canonical_nan(W::rounded(g * factor)));
    });
  }

 private:
  DMLOPS_INLINE static Doubles load_gradient(const T* row, bool one, std::int64_t i,
                                             std::int64_t used) {
    if (one) return to_doubles(load_number<T>(reinterpret_cast<const char*>(row)));
    return load_doubles(row, i, used);
  }

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
