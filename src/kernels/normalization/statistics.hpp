// Normalization with the input's mean and variance.
#pragma once

#include "kernels/normalization/reduce_moments.hpp"

namespace dmlops::DMLOPS_TARGET {

// Act(scale * (x - mean) / sqrt(variance + epsilon) + bias + added).
template <class T>
class Statistics {
 public:
  static constexpr int kSweeps = 2, kSums = 2;
  static constexpr int kSecond = kStatisticsAdded, kScale = kStatisticsScale,
                       kBias = kStatisticsBias;
  static constexpr unsigned int kConstantInRuns = 1u << kScale | 1u << kBias;
  using Element = T;
  using Parameters = StatisticsParameters;
  using W = Wide<T>;
  using Vector = typename W::Vector;

  struct Numbers {
    f64x center, variance, inverse_deviation;  // center: the mean
    Mask near_zero;
  };

  Statistics(const Reduction& reduction, const StatisticsParameters& parameters)
      : reduction_(reduction), parameters_(parameters) {}

  static unsigned int reads(int s) {
    return 1u << 1 | (s < kSweeps ? 0 : 1u << kScale | 1u << kBias | 1u << kSecond);
  }
  bool reduces() const { return parameters_.use_mean || parameters_.use_variance; }

  template <class Load>
  static void begin(Numbers& group, const Load&) {
    group.center = group.variance = f64x{};
    group.inverse_deviation = f64x{} + 1.0;
    group.near_zero = f64x{} == f64x{};
  }

  // True if the sum of the elements is needed.
  bool sums_elements() const { return parameters_.use_mean; }
  template <bool kSumsElements, class At>
  DMLOPS_INLINE static void add_products(const At& at, Vector* sums) {
    const Vector v = at.wide_x();
    if (kSumsElements) sums[0] = sums[0] + v;
    sums[1] = add_exact_product(sums[1], v, v);
  }
  template <class At>
  DMLOPS_INLINE static void add_deviations(const typename W::Minus& minus_mean, const At& at,
                                           Vector* sums) {
    const Vector d = at.existing(minus_mean(at.wide_x()));
    sums[0] = sums[0] + d;
    sums[1] = sums[1] + d * d;
  }

  DMLOPS_INLINE void end(int s, Numbers& group, const f64x* totals, const Divisor& count) const {
    const f64x offset = parameters_.use_mean ? totals[0] / count : f64x{};
    const f64x variance = totals[1] / count - offset * offset;
    group.center = group.center + offset;
    group.variance = variance < 0.0 ? f64x{} : variance;
    group.near_zero = s == 0 ? is_near_zero(group.center, variance) : Mask{};
    if (parameters_.use_variance) {
      group.inverse_deviation =
          1.0 / sqrt(group.variance + static_cast<double>(parameters_.epsilon));
    }
  }

  // Calls visit(operand, number) for the outputs with an element for each group.
  template <class Visit>
  DMLOPS_INLINE static void for_each_output(const Visit& visit) {
    visit(kStatisticsMean, &Numbers::center);
    visit(kStatisticsVariance, &Numbers::variance);
  }
  // Calls visit(operand) for the inputs with an element for each group, below kGroupOperandsEnd.
  static constexpr int kGroupOperandsEnd = kStatisticsBias + 1;
  template <class Visit>
  void for_each_group_operand(const Visit& visit) const {
    if (!parameters_.per_group) return;
    visit(kScale);
    visit(kBias);
  }

  struct Factors {
    typename W::GroupCoefficient factor, addend;
    f64x mean, inverse, scale, bias;
    Mask is_linear;
  };

  // Scale and bias have an element for each element of the input, or one for each group, as always
  // with a fused add.
  enum class Kind { per_element, per_group, with_added };

  // The results of a group in a row, or of a vector of groups.
  template <Kind kKind>
  struct Results {
    static constexpr bool kPerGroup = kKind != Kind::per_element, kAdds = kKind == Kind::with_added;
    static constexpr bool kLoadsParameters = kPerGroup;
    static constexpr int kCoefficients = 2, kWide = 3;
    typename W::Origin origin;
    typename W::Coefficient a, b;  // a (x - origin) + b
    typename W::Minus minus_mean;
    Vector inverse, group_factor, group_bias;

    template <class Of>
    DMLOPS_INLINE void set_linear(const Of& of) {
      origin = typename W::Origin(of(&Factors::mean));
      a = of(&Factors::factor);
      b = of(&Factors::addend);
    }
    template <class Of>
    DMLOPS_INLINE void set_wide(const Of& of) {
      minus_mean = typename W::Minus(of(&Factors::mean));
      inverse = W::of(of(&Factors::inverse));
      group_factor = inverse * W::of(of(&Factors::scale));
      group_bias = W::of(of(&Factors::bias));
    }
    template <class At>
    DMLOPS_INLINE f32x linear(const At& at) const {
      f32x v = at.x();
      keep_in_register(v);
      const auto normalized = fma(origin(v), a, b);
      if constexpr (kPerGroup) {
        return value_of(kAdds ? normalized + at.second() : normalized);
      } else {
        f32x factors = at.scale();
        keep_in_register(factors);
        return times_plus(normalized, factors, at.bias());
      }
    }
    template <class At>
    DMLOPS_INLINE f32x wide(const At& at) const {
      const Vector d = minus_mean(at.wide_x());
      Vector result = kPerGroup ? d * group_factor + group_bias
                                : d * (inverse * W::of(at.scale())) + W::of(at.bias());
      if (kAdds) result = result + at.wide_second();
      return W::rounded(result);
    }
  };
  template <Kind kKind, class Load>
  DMLOPS_INLINE Factors factors(const Numbers& group, const Load& load) const {
    constexpr bool kPerGroup = kKind != Kind::per_element;
    Factors f;
    f.scale = kPerGroup ? load(kScale) : f64x{} + 1.0;
    f.bias = kPerGroup ? load(kBias) : f64x{};
    f.mean = group.center;
    f.inverse = group.inverse_deviation;
    const f64x factor = group.inverse_deviation * f.scale;
    const f64x addend = f.bias - (group.center - W::Origin::of(group.center)) * factor;
    f.factor = W::coefficient(factor);
    f.addend = W::coefficient(addend);
    f.is_linear = W::Origin::suits(group.near_zero) & W::fits(factor) & W::fits(addend);
    if (kPerGroup || W::kTerms == 1) return f;
    // A scale would amplify the rounding of quotients below float32's normal range.
    const f64x squares = group.variance * group.inverse_deviation * group.inverse_deviation;
    f.is_linear = f.is_linear & ((group.variance == 0.0) | (squares > 0x1p-160));
    // The low term of a large deviation times a large scale may overflow, with the opposite sign.
    if (!parameters_.use_variance) f.is_linear = f.is_linear & (group.variance < 0x1p14);
    return f;
  }
  // Calls visit(kKind), as a constant.
  template <class Visit>
  DMLOPS_INLINE void with_kind(const Visit& visit) const {
    if (!parameters_.per_group) {
      visit(std::integral_constant<Kind, Kind::per_element>());
    } else if (reduction_.data[kSecond] == nullptr) {
      visit(std::integral_constant<Kind, Kind::per_group>());
    } else {
      visit(std::integral_constant<Kind, Kind::with_added>());
    }
  }

  bool activates() const { return parameters_.activation != nullptr; }
  // Applies the activation to dense results.
  void activate(float* results, std::int64_t length) const {
    char* const data = reinterpret_cast<char*>(results);
    parameters_.activation(dense_row(data, data, length), &parameters_.activation_parameters);
  }

  DMLOPS_INLINE void finish(const LaneOf<Factors>& factors, const GroupTiles& tiles,
                            std::int64_t k) const {
    if (!activates()) return normalize(factors, tiles, k, OutputTarget<T>{tiles, k});
    alignas(kVectorBytes) float normalized[kTileElements];
    const bool whole = tiles.length() <= kTileElements;
    normalize(factors, tiles, k, ActivatedTarget{*this, {tiles, k}, normalized, whole});
    if (!whole) return;
    activate(normalized, tiles.length());
    for (const TileRun& run : tiles)
      store_floats(ResultRow<T>(tiles, k, run), normalized + run.begin, run.length);
  }

 private:
  // A buffer for results that are activated as a whole or, in long tiles, run by run.
  struct ActivatedTarget {
    const Statistics& formula;
    OutputTarget<T> output;
    float* normalized;
    bool whole;

    DMLOPS_INLINE ResultRow<float> row(const TileRun& run) const {
      return ResultRow<float>(whole ? normalized + run.begin : normalized);
    }
    DMLOPS_INLINE void end(const TileRun& run) const {
      if (whole) return;
      formula.activate(normalized, run.length);
      store_floats(output.row(run), normalized, run.length);
    }
  };

  static void store_floats(const ResultRow<T>& target, const float* results, std::int64_t length) {
    target.store(
        length,
        [&](std::int64_t i, std::int64_t used)
            DMLOPS_LAMBDA_INLINE { return load_elements(results, i, used); },
        results);
  }

  template <class Target>
  DMLOPS_INLINE void normalize(const LaneOf<Factors>& factors, const GroupTiles& tiles,
                               std::int64_t k, const Target& target) const {
    with_kind([&](auto kind) DMLOPS_LAMBDA_INLINE {
      constexpr Kind kKind = decltype(kind)::value;
      if constexpr (kKind == Kind::per_element) {
        if (tiles.uniform(kScale) && tiles.uniform(kBias))
          return normalize_runs<kKind, ConstantRow<T>, ConstantRow<T>>(factors, tiles, k, target);
        if (tiles.uniform(kBias))
          return normalize_runs<kKind, OperandRow<T>, ConstantRow<T>>(factors, tiles, k, target);
      }
      normalize_runs<kKind, OperandRow<T>, OperandRow<T>>(factors, tiles, k, target);
    });
  }

  // Aligned as sweep_tiles() is.
  template <Kind kKind, class Scale, class Bias, class Target>
  DMLOPS_NO_INLINE __attribute__((aligned(64))) void normalize_runs(const LaneOf<Factors>& factors,
                                                                    const GroupTiles& tiles,
                                                                    std::int64_t k,
                                                                    const Target& target) const {
    constexpr int kAdded = kKind == Kind::with_added ? kSecond : 1;
    const auto row_of = [&](const TileRun& run) DMLOPS_LAMBDA_INLINE {
      return MomentRow<T, Scale, Bias>{tiles.row<T>(1, k, run),
                                       OperandRow<T>(tiles, kAdded, k, run),
                                       Scale(tiles, kScale, k, run), Bias(tiles, kBias, k, run)};
    };
    store_group(factors, Results<kKind>(), tiles, row_of, target);
  }

  const Reduction& reduction_;
  const StatisticsParameters& parameters_;
};

template <class T>
void statistics(const Reduction& reduction, const void* parameters) {
  reduce_moments<T, Statistics<T>>(reduction, parameters);
}

}  // namespace dmlops::DMLOPS_TARGET
