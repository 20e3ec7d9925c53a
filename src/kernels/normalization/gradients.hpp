// The gradients of batch normalization.
#pragma once

#include "kernels/normalization/reduce_moments.hpp"

namespace dmlops::DMLOPS_TARGET {

// c = the mean of the input (training) or the given mean, d = x - c, i = 1 / sqrt(variance +
// epsilon), and the gradient g of the output give:
//   bias: sum(g); scale: (sum(g d) + (c - given mean) sum(g)) i;
//   input: scale i g, or in training scale i (g - mean(g) - d mean(g d) i^2).
template <class T>
class Gradients {
 public:
  static constexpr int kSweeps = 2, kSums = 3;
  static constexpr int kSecond = kOutputGradient, kScale = 0, kBias = 0;
  static constexpr unsigned int kConstantInRuns = 0;
  using Element = T;
  using Parameters = GradientParameters;
  using W = Wide<T>;
  using Vector = typename W::Vector;

  struct Numbers {
    f64x center, mean, variance;
    f64x factor;                // scale i
    f64x mean_gradient, slope;  // slope: mean(g d) i^2
    f64x scale_gradient, bias_gradient;
    f64x scale;
    Mask near_zero;
  };

  Gradients(const Reduction&, const GradientParameters& parameters) : parameters_(parameters) {}

  // Given mean and variance, the gradient of the input does not depend on the input.
  unsigned int reads(int s) const {
    return 1u << kOutputGradient | (s < kSweeps || parameters_.training ? 1u << 1 : 0);
  }
  static bool reduces() { return true; }

  template <class Load>
  void begin(Numbers& group, const Load& load) const {
    // Factors are computed of all lanes, also of those that need no sweep.
    group.factor = group.mean_gradient = group.slope = f64x{};
    group.scale_gradient = group.bias_gradient = f64x{};
    group.mean = load(kGradientMean);
    group.center = parameters_.training ? f64x{} : group.mean;
    group.variance = load(kGradientVariance);
    group.scale = load(kGradientScale);
    group.near_zero = is_near_zero(group.center, group.variance);
  }

  // True if the sum of the elements is needed.
  bool sums_elements() const { return parameters_.training; }
  template <bool kSumsElements, class At>
  DMLOPS_INLINE static void add_products(const At& at, Vector* sums) {
    const Vector v = at.wide_x(), g = at.wide_second();
    if (kSumsElements) sums[0] = sums[0] + v;
    sums[1] = sums[1] + g;
    sums[2] = add_exact_product(sums[2], g, v);
  }
  template <class At>
  DMLOPS_INLINE static void add_deviations(const typename W::Minus& minus_center, const At& at,
                                           Vector* sums) {
    const Vector d = at.existing(minus_center(at.wide_x())), g = at.wide_second();
    sums[0] = sums[0] + d;
    sums[1] = sums[1] + g;
    sums[2] = sums[2] + g * d;
  }

  DMLOPS_INLINE void end(int s, Numbers& group, const f64x* totals, const Divisor& count) const {
    const f64x sum = totals[1], products = totals[2];
    // The center relative to the origin of the sums: 0 in the first sweep, the center in the
    // second.
    f64x offset = s == 0 ? group.center : f64x{};
    if (parameters_.training) {
      offset = totals[0] / count;
      group.center = group.center + offset;
    }
    const f64x shift = offset * sum, product = products - shift;
    // A single element has no deviation, which the second sweep finds exactly. It also replaces a
    // difference that has lost 8 bits, as where large gradients meet small deviations.
    const bool first = s == 0 && !count.is_one();
    group.near_zero = first ? is_near_zero(group.center, group.variance) &
                                  (product * product >= 0x1p-16 * (shift * shift))
                            : Mask{};
    const f64x variance = group.variance + static_cast<double>(parameters_.epsilon);
    const f64x inverse = 1.0 / sqrt(variance);
    group.factor = group.scale * inverse;
    group.scale_gradient = product * inverse;
    group.bias_gradient = sum;
    if (parameters_.training) {
      group.mean_gradient = sum / count;
      group.slope = product / count / variance;
      group.scale_gradient = (product + (group.center - group.mean) * sum) * inverse;
    }
  }

  // Calls visit(operand, number) for the outputs with an element for each group.
  template <class Visit>
  DMLOPS_INLINE static void for_each_output(const Visit& visit) {
    visit(kScaleGradient, &Numbers::scale_gradient);
    visit(kBiasGradient, &Numbers::bias_gradient);
  }
  // Calls visit(operand) for the inputs with an element for each group, below kGroupOperandsEnd.
  static constexpr int kGroupOperandsEnd = kGradientScale + 1;
  template <class Visit>
  DMLOPS_INLINE static void for_each_group_operand(const Visit& visit) {
    for (const int operand : {kGradientMean, kGradientVariance, kGradientScale}) visit(operand);
  }

  struct Factors {
    typename W::GroupCoefficient of_gradient, of_input, addend;
    f64x factor, center, mean_gradient, slope;
    Mask is_linear;
  };

  // The results of a group in a row, or of a vector of groups.
  template <bool kTraining>
  struct Results {
    static constexpr bool kLoadsParameters = false;
    static constexpr int kCoefficients = 3, kWide = kTraining ? 4 : 1;
    typename W::Origin of_gradient, of_input;
    typename W::Coefficient a, b, c;  // a (g - its origin) + b (x - its origin) + c
    typename W::Minus minus_center, minus_mean;
    Vector factor, slope;

    template <class Of>
    DMLOPS_INLINE void set_linear(const Of& of) {
      of_gradient = typename W::Origin(of(&Factors::mean_gradient));
      of_input = typename W::Origin(of(&Factors::center));
      a = of(&Factors::of_gradient);
      b = of(&Factors::of_input);
      c = of(&Factors::addend);
    }
    template <class Of>
    DMLOPS_INLINE void set_wide(const Of& of) {
      minus_center = typename W::Minus(of(&Factors::center));
      minus_mean = typename W::Minus(of(&Factors::mean_gradient));
      factor = W::of(of(&Factors::factor));
      slope = W::of(of(&Factors::slope));
    }
    template <class At>
    DMLOPS_INLINE f32x linear(const At& at) const {
      f32x v = at.x(), g = at.second();
      keep_in_register(v);
      keep_in_register(g);
      return value_of(fma(of_gradient(g), a, fma(of_input(v), b, c)));
    }
    template <class At>
    DMLOPS_INLINE f32x wide(const At& at) const {
      Vector g = at.wide_second();
      if (kTraining) g = minus_mean(g) - minus_center(at.wide_x()) * slope;
      return W::rounded(g * factor);
    }
  };
  template <bool kTraining, class Load>
  DMLOPS_INLINE Factors factors(const Numbers& group, const Load&) const {
    Factors f = {};
    f.factor = group.factor;
    if (!kTraining) return f;
    const f64x of_input = -group.factor * group.slope;
    const f64x center = group.center - W::Origin::of(group.center);
    const f64x mean_gradient = group.mean_gradient - W::Origin::of(group.mean_gradient);
    const f64x addend = group.factor * (center * group.slope - mean_gradient);
    f.of_gradient = W::coefficient(f.factor);
    f.of_input = W::coefficient(of_input);
    f.addend = W::coefficient(addend);
    f.center = group.center;
    f.mean_gradient = group.mean_gradient;
    f.slope = group.slope;
    f.is_linear =
        W::Origin::suits(group.near_zero) & W::fits(f.factor) & W::fits(of_input) & W::fits(addend);
    return f;
  }
  // Calls visit(kTraining), as a constant.
  template <class Visit>
  DMLOPS_INLINE void with_kind(const Visit& visit) const {
    with_constant(parameters_.training, visit);
  }

  static bool activates() { return false; }
  static void activate(float*, std::int64_t) {}

  void finish(const LaneOf<Factors>& factors, const GroupTiles& tiles, std::int64_t k) const {
    // Given mean and variance, the results are those of the gradient alone.
    with_kind([&](auto training) DMLOPS_LAMBDA_INLINE {
      constexpr bool kTraining = decltype(training)::value;
      constexpr int kInput = kTraining ? 1 : kSecond;
      store_group(
          factors, Results<kTraining>(), tiles,
          [&](const TileRun& run) DMLOPS_LAMBDA_INLINE {
            return MomentRow<T>{tiles.row<T>(kInput, k, run),
                                OperandRow<T>(tiles, kSecond, k, run)};
          },
          OutputTarget<T>{tiles, k});
    });
  }

 private:
  const GradientParameters& parameters_;
};

template <class T>
void gradients(const Reduction& reduction, const void* parameters) {
  reduce_moments<T, Gradients<T>>(reduction, parameters);
}

}  // namespace dmlops::DMLOPS_TARGET
