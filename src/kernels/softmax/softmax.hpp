// softmax: exp(x - max) / sum(exp(x - max)) over each group, and hardmax.
#pragma once

#include "kernels/blocks/group_sum.hpp"
#include "kernels/blocks/group_tiles.hpp"
#include "kernels/simd/exp_extended.hpp"
#include "kernels/simd/fold.hpp"

namespace dmlops::DMLOPS_TARGET {

// 2^64 e^(x - N kLn2) for N close to max / ln(2), as the unevaluated sum power + power * m, to 0.04
// ulp. Range reduction subtracts N instead of the maximum, so that no difference of elements is
// rounded; the common factor e^(N kLn2 - max) of a group's terms cancels in the quotient. For large
// maxima `far_` is subtracted first, which is exact for every x whose term is not 0.
class ExpTerm {
 public:
  struct Value {
    f32x power, m;
  };

  explicit ExpTerm(float top)
      : far_(splat<f32x>(top < kFar && top > -kFar ? 0.0f : top)), n_(splat<f32x>(0.0f)) {
    const f32x near = splat<f32x>(top) - far_;
    n_ = nearest_power(near, splat<f32x>(kLog2E), splat<f32x>(kPowerShift)).n;
    shift_ = splat<f32x>(kEighthUnit + 8 * 64) - 8.0f * n_;
    end_ = (n_ - 191.0f) * kLn2;  // the bits of the power are those of 0 there
    low_ = n_ * kLn2Low;
  }

  DMLOPS_INLINE Value operator()(f32x x) const {
    const f32x d = max(x - far_, end_);
    const f32x shifted = fma(d, splat<f32x>(8 * kLog2E), shift_);
    const f32x k = shifted - shift_;
    const i32x index = bit_cast<i32x>(shifted);
    const f32x r =
        fma(lookup(kEighthShift, index), splat<f32x>(-1.0f), fma(k, splat<f32x>(-kLn2 / 8), d));
    const f32x low = fma(k, splat<f32x>(-kLn2Low / 8), low_);
    const f32x tail = polynomial(r, 0.5f, 0x1.555552p-3f, 0x1.555a92p-5f, 0x1.11afd8p-7f);
    return {power_of_eighth(index), r + fma(r * r, tail, low)};
  }

 private:
  static constexpr float kFar = 512;

  f32x far_, n_, shift_, end_, low_;
};

// Loads a vector of a row's elements from i on; lanes past the end repeat the first element.
template <class T>
DMLOPS_INLINE f32x load_repeated(const T* x, std::int64_t i, std::int64_t used) {
  return used == kLanes<f32x>
             ? load<f32x>(x + i)
             : load_partial<f32x>(x + i, static_cast<std::size_t>(used),
                                  load_element<T>(reinterpret_cast<const char*>(x + i)));
}

// The maximum, and the sum of the terms.
template <class T>
struct Softmax {
  static constexpr int kSweeps = 2;
  static constexpr unsigned int kReads[] = {2, 2, 2};  // the input

  struct State {
    f32x max;
    float group_max;
    double sum;
    GroupSum<1> terms;
  };

  // The terms of groups that fit a tile, kept for the results.
  alignas(kVectorBytes) float powers[kTileElements], remainders[kTileElements];

  DMLOPS_INLINE static bool needs(int, const State&) { return true; }
  DMLOPS_INLINE static void begin(State& state, GroupTiles<T>&, std::int64_t) {
    state.max = splat<f32x>(-kInfinity);
    state.terms.clear();
  }

  void sweep(int s, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t,
             std::int64_t length) {
    const T* const x = tiles.row(1, k);
    if (s == 0) {
      f32x largest = state.max;
      for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
        largest = max(largest, load_repeated(x, i, used));
      });
      state.max = largest;
    } else if (tiles.has_whole_groups()) {
      add_terms<true>(state, x, place(tiles, k), length);
    } else {
      add_terms<false>(state, x, 0, length);
    }
  }

  static void end(int s, State& state, std::int64_t) {
    if (s == 0) {
      state.group_max =
          fold(state.max, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a < b ? b : a; });
    } else {
      state.sum = state.terms.total(0);
    }
  }
  DMLOPS_INLINE static void report(const State&, GroupTiles<T>&, std::int64_t) {}

  // Rounded once: y = (p + p m) / sum for p = power, with 1 / sum as a pair.
  void finish(const State& state, GroupTiles<T>& tiles, std::int64_t k, T* target, std::int64_t,
              std::int64_t length) const {
    const T* const x = tiles.row(1, k);
    if (tiles.has_whole_groups()) {
      const float* const power = powers + place(tiles, k);
      const float* const m = remainders + place(tiles, k);
      divide(state, target, length, [=](std::int64_t i, std::int64_t) DMLOPS_LAMBDA_INLINE {
        return ExpTerm::Value{load<f32x>(power + i), load<f32x>(m + i)};
      });
    } else {
      const ExpTerm term(state.group_max);
      divide(state, target, length, [=](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
        return term(load_elements(x, i, used));
      });
    }
  }

 private:
  DMLOPS_INLINE static std::int64_t place(const GroupTiles<T>& tiles, std::int64_t k) {
    return k * ((tiles.count() + kGroupStep - 1) / kGroupStep * kGroupStep);
  }

  template <bool kKeep>
  DMLOPS_INLINE void add_terms(State& state, const T* x, std::int64_t kept, std::int64_t length) {
    const ExpTerm term(state.group_max);
    state.terms.add(length,
                    [&](std::int64_t i, std::int64_t used, Doubles* added) DMLOPS_LAMBDA_INLINE {
                      const auto value = term(load_elements(x, i, used));
                      if (kKeep) {
                        store(powers + kept + i, value.power);
                        store(remainders + kept + i, value.m);
                      }
                      const Doubles power = to_double(value.power);
                      added[0] = added[0] + (power + power * to_double(value.m));
                    });
  }

  template <class Term>
  DMLOPS_INLINE static void divide(const State& state, T* target, std::int64_t length,
                                   const Term& term) {
    const FloatPair inverse(0x1p64 / state.sum);  // the sum has the factor 2^64
    const f32x high = inverse.high, low = inverse.low;
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const auto value = term(i, used);
      const f32x p = value.power * high;
      const f32x lost = fma(value.power, low, fma(value.power, high, -p));
      const f32x y = (p + fma(p, value.m, lost)) * 0x1p-64f;
      store_elements(target, i, used, canonical_nan(y));
    });
  }
};

// The index of the first maximum, or of the first NaN.
template <class T>
struct Hardmax {
  static constexpr int kSweeps = 1;
  static constexpr unsigned int kReads[] = {2, 0};  // the input; nothing

  struct State {
    float max;
    std::int64_t index;
  };

  DMLOPS_INLINE static bool needs(int, const State&) { return true; }
  DMLOPS_INLINE static void begin(State& state, GroupTiles<T>&, std::int64_t) {
    state.max = -kInfinity;
    state.index = 0;
  }

  static void sweep(int, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t begin,
                    std::int64_t length) {
    if (state.max != state.max) return;  // the first NaN has been found
    const T* const x = tiles.row(1, k);
    f32x in_lanes = splat<f32x>(-kInfinity);
    i32x unordered = {};
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const f32x v = load_repeated(x, i, used);
      in_lanes = max(in_lanes, v);
      unordered |= v != v;
    });
    if (any_bit(bit_cast<u32x>(unordered), ~0u)) {
      state.max = __builtin_nanf("");
      state.index = begin + first(x, length, [](f32x v) DMLOPS_LAMBDA_INLINE { return v != v; });
      return;
    }
    const float largest =
        fold(in_lanes, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a < b ? b : a; });
    if (!(largest > state.max)) return;
    state.max = largest;
    state.index = begin + first(x, length, [largest](f32x v) DMLOPS_LAMBDA_INLINE {
                    return v == splat<f32x>(largest);
                  });
  }

  DMLOPS_INLINE static void end(int, State&, std::int64_t) {}
  DMLOPS_INLINE static void report(const State&, GroupTiles<T>&, std::int64_t) {}

  static void finish(const State& state, GroupTiles<T>&, std::int64_t, T* target,
                     std::int64_t begin, std::int64_t length) {
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      store_elements(target, i, used, splat<f32x>(0.0f));
    });
    const std::int64_t i = state.index - begin;
    if (i >= 0 && i < length) store_partial(target + i, splat<f32x>(1.0f), 1);
  }

 private:
  // Returns the index of the first element that passes; one must exist.
  template <class Test>
  DMLOPS_INLINE static std::int64_t first(const T* x, std::int64_t length, const Test& test) {
    constexpr std::int64_t lanes = kLanes<f32x>;
    std::int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      if (any_bit(bit_cast<u32x>(test(load<f32x>(x + i))), ~0u)) break;
    }
    const i32x passes = test(load_elements(x, i, min(length - i, lanes)));
    alignas(kVectorBytes) std::int32_t each[lanes];
    store(each, passes);
    std::int64_t lane = 0;
    while (lane + 1 < lanes && each[lane] == 0) ++lane;
    return i + lane;
  }
};

template <class T>
void softmax(const Reduction& reduction, const void*) {
  Softmax<T> formula;
  reduce_groups<T>(reduction, formula);
}

template <class T>
void hardmax(const Reduction& reduction, const void*) {
  Hardmax<T> formula;
  reduce_groups<T>(reduction, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
