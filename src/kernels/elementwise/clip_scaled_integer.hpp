// clip of integers with scale and bias, computed in double and truncated.
#pragma once

#include "kernels/elementwise/integer.hpp"
#include "kernels/simd/integers.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
DMLOPS_INLINE T bound_from_bits(std::uint64_t bits) {
  return bit_cast<T>(static_cast<Bits<T>>(bits));
}

template <class T>
struct ScaledInteger {
  T lower, upper;
  double scale, bias;

  explicit ScaledInteger(const ClipParameters& p)
      : lower(bound_from_bits<T>(p.min_bits)),
        upper(bound_from_bits<T>(p.max_bits)),
        scale(static_cast<double>(p.scale)),
        bias(static_cast<double>(p.bias)) {}

  DMLOPS_INLINE T operator()(T x) const {
    const T scaled = truncate<T>(fma_by_float(static_cast<double>(x), scale, bias));
    const T limited = scaled < upper ? scaled : upper;
    return limited > lower ? limited : lower;
  }
};

#if defined(DMLOPS_HAS_DOUBLE_FMA)
// Extracts element k of type T from each 32 bits.
template <class T, class V>
DMLOPS_INLINE auto element(V x, int k) {
  using Result = typename VectorOf<std::int32_t, sizeof(V)>::type;
  using Unsigned = typename VectorOf<std::uint32_t, sizeof(V)>::type;
  using Signed = std::conditional_t<std::is_signed_v<T>, Result, Unsigned>;
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  return bit_cast<Result>(bit_cast<Signed>(bit_cast<Unsigned>(x) << (32 - bits * (k + 1))) >>
                          (32 - bits));
}

// ScaledInteger for vectors of 16-bit or 32-bit integers, if no intermediate is NaN.
template <class T>
struct ScaledIntegers {
  using V = typename VectorOf<T, kVectorBytes / 2>::type;
  i32half lower;
  f64x upper, scale, bias;

  explicit ScaledIntegers(const ScaledInteger<T>& one)
      : lower(splat<i32half>(one.lower)),
        upper(splat<f64x>(one.upper)),
        scale(splat<f64x>(one.scale)),
        bias(splat<f64x>(one.bias)) {}

  DMLOPS_INLINE V operator()(V x) const {
    if constexpr (sizeof(T) == 4) {
      return scaled(x);
    } else {
      const i32half low = scaled(element<T>(x, 0)), high = scaled(element<T>(x, 1));
      return bit_cast<V>((low & 0xffff) | (high << 16));
    }
  }

 private:
  DMLOPS_INLINE i32half scaled(i32half x) const {
    return max(truncate(min(fma(to_double(x), scale, bias), upper)), lower);
  }
};

#if defined(__AVX2__) && !defined(__AVX512VBMI__)  // VBMI has a faster table lookup
// ScaledInteger for bytes in float32, which is correct for most parameters only.
template <class T>
struct ScaledBytes {
  Vec<T> lower, upper;
  f32x scale, bias;

  explicit ScaledBytes(const ScaledInteger<T>& one)
      : lower(splat<Vec<T>>(one.lower)),
        upper(splat<Vec<T>>(one.upper)),
        scale(splat<f32x>(static_cast<float>(one.scale))),
        bias(splat<f32x>(static_cast<float>(one.bias))) {}

  DMLOPS_INLINE Vec<T> operator()(Vec<T> x) const {
    const i32x integers[] = {scaled(x, 0), scaled(x, 1), scaled(x, 2), scaled(x, 3)};
    return max(min(join_bytes<T>(integers), upper), lower);
  }

  bool equals(const ByteTable& exact) const {
    Vec<T> x;
    for (int lane = 0; lane < kLanes<Vec<T>>; ++lane) x[lane] = static_cast<T>(lane);
    for (int i = 0; i < 256; i += kLanes<Vec<T>>) {
      const Vec<T> result = (*this)(x);
      if (__builtin_memcmp(&result, exact.results + i, sizeof result) != 0) return false;
      x += static_cast<T>(kLanes<Vec<T>>);
    }
    return true;
  }

 private:
  DMLOPS_INLINE i32x scaled(Vec<T> x, int k) const {
    return truncate(fma(__builtin_convertvector(element<T>(x, k), f32x), scale, bias));
  }
};

// Computes bytes in float32 if that gives the exact results for all values, otherwise by table
// lookup.
template <class T>
void clip_scaled_bytes(const Rows& rows, const ScaledInteger<T>& formula) {
  const ByteTable exact = byte_table<T>(formula);
  // Float32 rounds a product just below an integer up to that integer; a scale that is smaller by 1
  // ulp avoids this.
  ScaledInteger<T> less = formula;
  less.scale = static_cast<double>(
      bit_cast<float>(bit_cast<std::uint32_t>(static_cast<float>(formula.scale)) - 1));
  const ScaledInteger<T> candidates[] = {formula, less};
  for (const ScaledInteger<T>& candidate : candidates) {
    const ScaledBytes<T> vectors(candidate);
    if (vectors.equals(exact)) return map<T, Vec<T>, 1>(rows, vectors);
  }
  map_bytes(rows, exact);
}
#endif
#endif

template <class T>
void clip_scaled_integer(const Rows& rows, const ClipParameters& p) {
  const ScaledInteger<T> formula(p);
#if defined(__AVX2__) && !defined(__AVX512VBMI__)
  if constexpr (sizeof(T) == 1) {
    if (use_byte_table(rows)) return clip_scaled_bytes<T>(rows, formula);
  }
#endif
#if defined(DMLOPS_HAS_DOUBLE_FMA)
  if constexpr (sizeof(T) == 2 || std::is_same_v<T, std::int32_t>) {
    const bool finite = p.scale - p.scale == 0 && p.bias - p.bias == 0;
    if (finite) {
      const ScaledIntegers<T> vectors(formula);
      return map<T, typename ScaledIntegers<T>::V, 1>(rows, vectors);
    }
  }
#endif
  map_integers<T>(rows, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
