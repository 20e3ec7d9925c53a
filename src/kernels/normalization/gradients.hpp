// The gradients of batch normalization.
#pragma once

#include "kernels/normalization/moments.hpp"

namespace dmlops::DMLOPS_TARGET {

// c = the mean of the input (training) or the given mean, d = x - c, i = 1 / sqrt(variance +
// epsilon), and the gradient g of the output give:
//   bias: sum(g); scale: (sum(g d) + (c - given mean) sum(g)) i;
//   input: scale i g, or in training scale i (g - mean(g) - d mean(g d) i^2).
template <class T>
class Gradients {
 public:
  static constexpr int kSweeps = 2;
  static constexpr bool kHasSums = true;
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
    GroupSum<3, Vector> sums;
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
    // The center relative to the origin of the sums: 0 in the first sweep, the center in the
    // second.
    double offset = s == 0 ? state.center : 0;
    if (parameters_.training) {
      offset = state.sums.total(0) / elements;
      state.center += offset;
    }
    state.near_zero = s == 0 && is_near_zero(state.center, state.variance);
    const double inverse = 1.0 / __builtin_sqrt(state.variance);
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
      store_row(target, length, tiles.streams(),
                [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                  const f32x v = load_elements(x, i, used), g = gradient.load(i, used);
                  const f32x low = fma(g, a.low, fma(v, b.low, c.low));
                  const f32x result = fma(g, a.high, fma(v, b.high, c.high)) + low;
                  return canonical_nan(result);
                });
      return;
    }
    const typename W::Minus minus_center(state.center), minus_mean(state.mean_gradient);
    const Vector factor = W::of(state.factor), slope = W::of(state.slope);
    store_row(target, length, tiles.streams(),
              [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                Vector g = gradient.load_wide(i, used);
                if (training) g = minus_mean(g) - minus_center(W::load(x, i, used)) * slope;
                return canonical_nan(W::rounded(g * factor));
              });
  }

 private:
  const GradientParameters& parameters_;
};

template <class T>
void gradients(const Reduction& reduction, const void* parameters) {
  Gradients<T> formula(*static_cast<const GradientParameters*>(parameters));
  reduce_groups<T>(reduction, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
