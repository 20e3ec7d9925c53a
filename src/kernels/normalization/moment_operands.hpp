// The operands and results of normalizations: numbers of groups, rows, and the precision of sums.
//
// The members of a formula, such as Statistics, beyond those that sweep_tiles.hpp names:
//
//   Element, Parameters      types of an element, and of the parameters that the constructor takes
//   W, Vector                Wide<Element>, and its vector, in which sums are added up
//   kSums                    sums of a sweep
//   kSecond, kScale, kBias   operands with an element for each element of the input; 0: none
//   for_each_group_operand() visits the inputs of each group, which are below kGroupOperandsEnd
//   for_each_output()        visits the outputs of each group
//   reduces()                false if no sweep is needed
//   Numbers                  vectors of numbers of groups, such as `center`, and a mask of those
//                            that need the first sweep, or after it no second one: `near_zero`
//   begin(), end()           set Numbers before the sweeps, and after each
//   sums_elements()          false if the first sum of the first sweep is not needed
//   add_products()           adds the terms of the first sweep, with the first one or without
//   add_deviations()         adds the terms of the second sweep, of elements minus `center`
//   with_kind()              passes the kind of the results as a constant to the functions below
//   factors()                Factors, which results need of Numbers; `is_linear`: for linear()
//   Results                  the formulas of results: linear(), elements times coefficients, set by
//                            set_linear(), with kCoefficients; wide(), of deviations, set by
//                            set_wide(), with about kWide times a Vector; kLoadsParameters: if
//                            factors() loads scale and bias
//   finish()                 stores the results of a group along a row
//   activates(), activate()  apply the fused activation to dense results of columns
#pragma once

#include "kernels/blocks/group_tiles.hpp"
#include "kernels/blocks/row_elements.hpp"
#include "kernels/normalization/group_moments.hpp"
#include "kernels/normalization/group_sum.hpp"

namespace dmlops::DMLOPS_TARGET {

// Calls visit(condition), as a constant.
template <class Visit>
DMLOPS_INLINE void with_constant(bool condition, const Visit& visit) {
  if (condition) {
    visit(std::true_type());
  } else {
    visit(std::false_type());
  }
}

template <class T>
DMLOPS_INLINE double load_number(const char* address) {
  return static_cast<double>(load_partial<f32x>(reinterpret_cast<const T*>(address), 1)[0]);
}
template <class T>
DMLOPS_INLINE void store_number(char* address, double value) {
  store_partial(reinterpret_cast<T*>(address), canonical_nan(rounded(to_doubles(value))), 1);
}

// The precision of sums, and of results that are not linear: float64 for float32 elements.
template <class T>
struct Wide {
  using Vector = Doubles;
  // The coefficients of linear results have two terms, for float16 elements one. GroupCoefficient:
  // of a vector of groups. Coefficient: of a vector of elements.
  static constexpr int kTerms = 2;
  using GroupCoefficient = HalfPair;
  using Coefficient = FloatPair;

  DMLOPS_INLINE static GroupCoefficient coefficient(f64x number) { return HalfPair(number); }

  // True if the terms of a coefficient, and their products with elements, are within float32's
  // normal range.
  DMLOPS_INLINE static Mask fits(f64x number) {
    const f64x size = number < 0.0 ? -number : number;
    return (number == 0.0) | ((size > 0x1p-78) & (size < 0x1p100));
  }

  // The origin of linear results, coefficient * (x - origin) + addend: 0, from which deviations
  // lose few digits to cancellation if the mean is near it.
  struct Origin {
    Origin() = default;
    template <class Number>
    explicit Origin(Number) {}

    DMLOPS_INLINE f32x operator()(f32x x) const { return x; }
    DMLOPS_INLINE static f64x of(f64x) { return f64x{}; }
    DMLOPS_INLINE static Mask suits(Mask near_zero) { return near_zero; }
  };

  DMLOPS_INLINE static Vector load(const T* row, std::int64_t i, std::int64_t used,
                                   std::int64_t first = 0) {
    if (used - first == kFloatLanes) return load_doubles(row + i);
    return load_doubles(row + i, first, used);
  }
  DMLOPS_INLINE static Vector of(f32x v) { return to_double(v); }
  DMLOPS_INLINE static Vector of(double value) { return to_doubles(value); }
  DMLOPS_INLINE static Vector of(Doubles values) { return values; }
  DMLOPS_INLINE static f32x rounded(Vector v) { return DMLOPS_TARGET::rounded(v); }

  // Subtracts a constant.
  struct Minus {
    Vector value;

    Minus() = default;
    template <class Number>
    explicit Minus(Number number) : value(of(number)) {}
    DMLOPS_INLINE Vector operator()(Vector x) const { return x - value; }
  };
};

// float32 for float16 elements: no product of elements, deviations and inverse deviations overflows
// float32 unless the result overflows float16.
template <>
struct Wide<float16> {
  using Vector = f32x;
  static constexpr int kTerms = 1;
  using GroupCoefficient = f32half;
  using Coefficient = f32x;

  DMLOPS_INLINE static GroupCoefficient coefficient(f64x number) { return to_float(number); }

  // True if products of a coefficient with elements are in float32's range. Products below it round
  // to 0 in float16.
  DMLOPS_INLINE static Mask fits(f64x number) { return (number > -0x1p100) & (number < 0x1p100); }

  // The mean rounded to float32. Deviations from it lose no digits to cancellation.
  struct Origin {
    f32x value;

    Origin() = default;
    template <class Number>
    explicit Origin(Number mean) : value(Wide::of(mean)) {}

    DMLOPS_INLINE f32x operator()(f32x x) const { return x - value; }
    DMLOPS_INLINE static f64x of(f64x mean) {
      alignas(kVectorBytes) float stored[kLanes<f64x>];  // see to_double()
      store(stored, to_float(mean));
      return to_double(stored);
    }
    DMLOPS_INLINE static Mask suits(Mask) { return Mask{} == Mask{}; }
  };

  DMLOPS_INLINE static Vector load(const float16* row, std::int64_t i, std::int64_t used,
                                   std::int64_t first = 0) {
    return load_elements(row, i, used, first);
  }
  DMLOPS_INLINE static Vector of(f32x v) { return v; }
  DMLOPS_INLINE static Vector of(double value) { return splat<f32x>(static_cast<float>(value)); }
  DMLOPS_INLINE static Vector of(Doubles values) { return DMLOPS_TARGET::rounded(values); }
  DMLOPS_INLINE static f32x rounded(Vector v) { return v; }

  // Subtracts in two steps, since x - value.high is exact if it is small (Sterbenz's lemma).
  struct Minus {
    FloatPair value;

    Minus() = default;
    template <class Number>
    explicit Minus(Number number) : value(number) {}
    DMLOPS_INLINE Vector operator()(Vector x) const { return (x - value.high) - value.low; }
  };
};

// The row of an operand, or one element that is broadcast to the group.
template <class T>
class OperandRow {
 public:
  OperandRow() = default;  // of an absent operand
  OperandRow(const T* row, bool uniform) : row_(row), uniform_(uniform) {}
  OperandRow(const GroupTiles& tiles, int operand, std::int64_t k, const TileRun& run)
      : OperandRow(tiles.row<T>(operand, k, run), tiles.uniform(operand)) {}

  double number() const { return load_number<T>(reinterpret_cast<const char*>(row_)); }
  DMLOPS_INLINE f32x load(std::int64_t i, std::int64_t used) const {
    if (__builtin_expect(uniform_, 0)) return splat<f32x>(static_cast<float>(number()));
    return load_elements(row_, i, used);
  }
  DMLOPS_INLINE typename Wide<T>::Vector load_wide(std::int64_t i, std::int64_t used,
                                                   std::int64_t first) const {
    return uniform_ ? existing(first, used, Wide<T>::of(number()))
                    : Wide<T>::load(row_, i, used, first);
  }
  const T* row() const { return row_; }
  OperandRow from(std::int64_t i) const { return {uniform_ ? row_ : row_ + i, uniform_}; }

 private:
  const T* row_ = nullptr;
  bool uniform_ = true;
};

// An operand with one element for the row.
template <class T>
class ConstantRow {
 public:
  ConstantRow() = default;
  ConstantRow(const GroupTiles& tiles, int operand, std::int64_t k, const TileRun& run)
      : value_(splat<f32x>(static_cast<float>(OperandRow<T>(tiles, operand, k, run).number()))) {}

  DMLOPS_INLINE f32x load(std::int64_t, std::int64_t) const { return value_; }

 private:
  f32x value_;
};

// The results of a row.
template <class T>
class ResultRow {
 public:
  explicit ResultRow(T* row) : row_(row), streams_(false) {}
  ResultRow(const GroupTiles& tiles, std::int64_t k, const TileRun& run)
      : row_(tiles.row<T>(0, k, run)), streams_(tiles.streams()) {}

  // Stores formula(i, used) for each vector. Non-temporal stores, and those to long rows, begin at
  // the first aligned vector. The inputs are the rows that the formula loads from: if the results
  // trail one of them closely, a forward loop would stall on store-to-load aliasing.
  template <class Formula, class... Input>
  DMLOPS_INLINE void store(std::int64_t length, const Formula& formula,
                           const Input*... inputs) const {
    constexpr std::int64_t size = sizeof(T);
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row_) %
                                                static_cast<std::uintptr_t>(kFloatLanes * size));
    const bool aligns = past % size == 0 && (streams_ || length >= kShortestAligned);
    const bool streams = streams_ && aligns;
    const std::int64_t begin = aligns ? min(length, (kFloatLanes - past / size) % kFloatLanes) : 0;
    const std::int64_t vectors = (length - begin) / kFloatLanes,
                       end = begin + vectors * kFloatLanes;
    const bool backwards = (trails_closely(row_, inputs) || ...);
    const std::int64_t step = backwards ? -kFloatLanes : kFloatLanes;
    if (begin > 0) store_elements(row_, 0, begin, formula(0, begin));
    std::int64_t i = backwards ? end - kFloatLanes : begin;
    // Stores kCount vectors at a time, since the loop and the choice of a store take as long as a
    // formula.
    const auto store_vectors = [&](auto count, std::int64_t v) DMLOPS_LAMBDA_INLINE {
      constexpr int kCount = decltype(count)::value;
      for (; v + kCount <= vectors; v += kCount, i += kCount * step) {
        f32x results[kCount];
#pragma GCC unroll 16
        for (int j = 0; j < kCount; ++j) results[j] = formula(i + j * step, kFloatLanes);
#pragma GCC unroll 16
        for (int j = 0; j < kCount; ++j) {
          if (streams) {
            store_non_temporal(row_ + i + j * step, results[j]);
          } else {
            DMLOPS_TARGET::store(row_ + i + j * step, results[j]);
          }
        }
      }
      return v;
    };
    const std::int64_t stored = store_vectors(std::integral_constant<int, kTogether>(), 0);
    store_vectors(std::integral_constant<int, 1>(), stored);
    if (end < length) store_elements(row_, end, length - end, formula(end, length - end));
  }

 private:
  static constexpr int kTogether = kForSize ? 1 : 2;                  // vectors
  static constexpr std::int64_t kShortestAligned = 16 * kFloatLanes;  // elements

  T* row_;
  bool streams_;
};

// The operands of a row of elements; `second` is the fused add or the gradient. Scale and bias are
// rows of the given types.
template <class T, class Scale = OperandRow<T>, class Bias = OperandRow<T>>
struct MomentRow {
  using Wide = DMLOPS_TARGET::Wide<T>;

  const T* elements;
  OperandRow<T> seconds;
  Scale scales = {};
  Bias biases = {};

  // The vector from element i on, of which [first, used) exist.
  struct At {
    const MomentRow& row;
    std::int64_t i, used, first = 0;

    DMLOPS_INLINE f32x x() const { return load_elements(row.elements, i, used); }
    DMLOPS_INLINE auto wide_x() const { return Wide::load(row.elements, i, used, first); }
    DMLOPS_INLINE f32x second() const { return row.seconds.load(i, used); }
    DMLOPS_INLINE auto wide_second() const { return row.seconds.load_wide(i, used, first); }
    // Returns v, with 0 for elements that do not exist.
    template <class V>
    DMLOPS_INLINE V existing(V v) const {
      return used - first == kFloatLanes ? v : DMLOPS_TARGET::existing(first, used, v);
    }
    DMLOPS_INLINE f32x scale() const { return row.scales.load(i, used); }
    DMLOPS_INLINE f32x bias() const { return row.biases.load(i, used); }
  };
};

// True if the mean is at most 4 standard deviations from 0. The variance as mean(x^2) - mean^2 and
// deviations as a x + b then lose few digits to cancellation.
DMLOPS_INLINE Mask is_near_zero(f64x mean, f64x variance) { return mean * mean <= 16.0 * variance; }

// Prefetches as many elements as a row has, `ahead` bytes from it.
template <class T>
DMLOPS_INLINE void prefetch_row(const T* row, std::int64_t ahead, std::int64_t count) {
  prefetch_lines<2>(reinterpret_cast<const char*>(row) + ahead, count * std::int64_t{sizeof(T)});
}

// Stores the results of group k in the loaded tile; row_of(run) returns the operands of a run. Each
// run's results are stored to target.row(run), and then target.end(run) is called.
template <class Factors, class Results, class RowOf, class Target>
DMLOPS_INLINE void store_group(const LaneOf<Factors>& factors, Results results,
                               const GroupTiles& tiles, const RowOf& row_of, const Target& target) {
  const bool is_linear = factors(&Factors::is_linear);
  if (is_linear) {
    results.set_linear(factors);
  } else {
    results.set_wide(factors);
  }
  tiles.for_each_run([&](const TileRun& run) DMLOPS_LAMBDA_INLINE {
    const auto row = row_of(run);
    const auto results_row = target.row(run);
    using At = typename decltype(row_of(run))::At;
    const auto store = [&](const auto& result) DMLOPS_LAMBDA_INLINE {
      results_row.store(
          run.length,
          [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
            return canonical_nan(result(At{row, i, used}));
          },
          row.elements, row.seconds.row());
    };
    if (is_linear) {
      store([&](const At& at) DMLOPS_LAMBDA_INLINE { return results.linear(at); });
    } else {
      store([&](const At& at) DMLOPS_LAMBDA_INLINE { return results.wide(at); });
    }
    target.end(run);
  });
}

// The output of group k in the loaded tile, for store_group().
template <class T>
struct OutputTarget {
  const GroupTiles& tiles;
  std::int64_t k;

  DMLOPS_INLINE ResultRow<T> row(const TileRun& run) const { return {tiles, k, run}; }
  DMLOPS_INLINE void end(const TileRun&) const {}
};

}  // namespace dmlops::DMLOPS_TARGET
