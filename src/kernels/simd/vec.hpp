// Vectors of one register, as compiler vector types, whose operators mean the same on every target.
//
// All functions are in the namespace of the instruction set, so that the linker cannot use them in
// the code of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef DMLOPS_TARGET
#error "DMLOPS_TARGET names the instruction set's namespace; the build defines it"
#endif

#ifdef DMLOPS_SANITIZED  // force-inlined code with checks takes minutes to compile
#define DMLOPS_LAMBDA_INLINE
#else
#define DMLOPS_LAMBDA_INLINE __attribute__((always_inline))
#endif
#define DMLOPS_INLINE_SMALL inline DMLOPS_LAMBDA_INLINE
#if defined(__x86_64__) && !defined(__AVX2__)
#define DMLOPS_FOR_SIZE true  // few processors run the baseline
#define DMLOPS_INLINE inline
#else
#define DMLOPS_FOR_SIZE false
#define DMLOPS_INLINE DMLOPS_INLINE_SMALL
#endif
// For templates; other functions also need `inline`.
#define DMLOPS_NO_INLINE __attribute__((noinline))

namespace dmlops::DMLOPS_TARGET {

// std::min would leave a weak symbol compiled with this target's flags, for all code to link.
DMLOPS_INLINE_SMALL std::int64_t min(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
DMLOPS_INLINE_SMALL std::int64_t max(std::int64_t a, std::int64_t b) { return a < b ? b : a; }
DMLOPS_INLINE_SMALL std::int64_t abs(std::int64_t x) { return x < 0 ? -x : x; }

// Returns the next multiple of a unit, of a number that is not negative.
DMLOPS_INLINE_SMALL std::int64_t round_up(std::int64_t a, std::int64_t unit) {
  return (a + unit - 1) / unit * unit;
}

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kVectorRegisters = 32;
#else
constexpr int kVectorRegisters = 16;
#endif

constexpr bool kForSize = DMLOPS_FOR_SIZE;

template <class T, int kBytes = kVectorBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;

using f32x = Vec<float>;
using i32x = Vec<std::int32_t>;
using u32x = Vec<std::uint32_t>;
using u8x = Vec<std::uint8_t>;
using f64x = Vec<double>;
using f32half = typename VectorOf<float, kVectorBytes / 2>::type;  // as many lanes as f64x

// Stores the first kBytes of a vector.
template <int kBytes, class V>
DMLOPS_INLINE_SMALL void store_front(char* target, V v) {
  typename VectorOf<std::uint8_t, kBytes>::type front;
  if constexpr (kBytes == sizeof(V)) {
    std::memcpy(&front, &v, sizeof v);
#if defined(__AVX512F__)
  } else if constexpr (sizeof(V) == 64) {
    __m512i all;
    std::memcpy(&all, &v, sizeof v);
    if constexpr (kBytes == 32) front = (decltype(front))_mm512_castsi512_si256(all);
    if constexpr (kBytes == 16) front = (decltype(front))_mm512_castsi512_si128(all);
#endif
#if defined(__AVX2__)
  } else {
    __m256i all;
    std::memcpy(&all, &v, sizeof v);
    front = (decltype(front))_mm256_castsi256_si128(all);
#endif
  }
  std::memcpy(target, &front, sizeof front);
}

template <class V>
using Lane = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<V&>()[0])>>;
template <class V>
constexpr int kLanes = static_cast<int>(sizeof(V) / sizeof(Lane<V>));
constexpr std::int64_t kFloatLanes = kLanes<f32x>;  // in the type of indices

template <class To, class From>
DMLOPS_INLINE_SMALL To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// GNU vectors convert scalars only as operands, and adding to zero would lose the sign of -0. For
// 64-byte vectors, GCC compiles the loop to a masked move per lane.
template <class V>
DMLOPS_INLINE_SMALL V splat(Lane<V> value) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) {
    if constexpr (std::is_same_v<Lane<V>, float>) return _mm512_set1_ps(value);
    if constexpr (std::is_same_v<Lane<V>, double>) return _mm512_set1_pd(value);
    if constexpr (std::is_integral_v<Lane<V>> && sizeof value > 1) {
      const auto bits = static_cast<std::int64_t>(value);
      if constexpr (sizeof value == 2)
        return bit_cast<V>(_mm512_set1_epi16(static_cast<short>(bits)));
      if constexpr (sizeof value == 4)
        return bit_cast<V>(_mm512_set1_epi32(static_cast<int>(bits)));
      if constexpr (sizeof value == 8) return bit_cast<V>(_mm512_set1_epi64(bits));
    }
  }
#endif
  V v;
  for (int i = 0; i < kLanes<V>; ++i) v[i] = value;
  return v;
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define DMLOPS_HAS_SHUFFLEVECTOR 1
#endif
#endif

// Selects lanes of a and, from index kLanes<V> on, of b.
template <std::size_t... kIndex, class V>
DMLOPS_INLINE_SMALL V shuffle(V a, V b) {
#if defined(DMLOPS_HAS_SHUFFLEVECTOR)
  return __builtin_shufflevector(a, b, kIndex...);
#else
  using Indices = decltype(a == b);
  return __builtin_shuffle(a, b, Indices{static_cast<Lane<Indices>>(kIndex)...});
#endif
}

// Returns 0, 1, 2, ...
DMLOPS_INLINE_SMALL i32x lane_indices() {
  i32x indices;
  for (int i = 0; i < kLanes<i32x>; ++i) indices[i] = i;
  return indices;
}

// An optimization barrier after a load, which GCC would repeat for each use, or put under a mask.
template <class V>
DMLOPS_INLINE_SMALL void keep_in_register(V& v) {
#if defined(__AVX512F__)
  __asm__("" : "+v"(v));
#elif defined(__SSE2__)
  __asm__("" : "+x"(v));
#elif defined(__aarch64__)
  __asm__("" : "+w"(v));
#endif
}

// min and max return `x` unless strictly beyond the bound: a NaN in `x` passes through, and so does
// -0 against a bound of +0. On x86 that is one instruction, which compilers do not generate.
template <class V>
DMLOPS_INLINE_SMALL V min(V x, V bound) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, f32x>) return _mm512_min_ps(bound, x);
  if constexpr (std::is_same_v<V, f64x>) return _mm512_min_pd(bound, x);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, f32x>) return _mm256_min_ps(bound, x);
  if constexpr (std::is_same_v<V, f64x>) return _mm256_min_pd(bound, x);
#elif defined(__SSE2__)
  if constexpr (std::is_same_v<V, f32x>) return _mm_min_ps(bound, x);
#endif
  return bound < x ? bound : x;
}
template <class V>
DMLOPS_INLINE_SMALL V max(V x, V bound) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, f32x>) return _mm512_max_ps(bound, x);
  if constexpr (std::is_same_v<V, f64x>) return _mm512_max_pd(bound, x);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<V, f32x>) return _mm256_max_ps(bound, x);
  if constexpr (std::is_same_v<V, f64x>) return _mm256_max_pd(bound, x);
#elif defined(__SSE2__)
  if constexpr (std::is_same_v<V, f32x>) return _mm_max_ps(bound, x);
#endif
  return x < bound ? bound : x;
}

// Looks up table[index % 8], for lanes of 4 bytes.
template <class T>
DMLOPS_INLINE_SMALL Vec<T> lookup(const T (&table)[8], i32x index) {
  static_assert(sizeof(T) == sizeof(index[0]), "an entry is as wide as an index");
#if defined(__AVX512F__)
  const __m512i entries =
      _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(table)));
  return bit_cast<Vec<T>>(_mm512_permutexvar_epi32(bit_cast<__m512i>(index), entries));
#elif defined(__AVX2__)
  const __m256i entries = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table));
  return bit_cast<Vec<T>>(_mm256_permutevar8x32_epi32(entries, bit_cast<__m256i>(index)));
#elif defined(__aarch64__)
  uint8x16x2_t entries;
  std::memcpy(&entries, table, sizeof entries);
  const i32x bytes = (index & 7) * 0x04040404 + 0x03020100;  // byte indices into the table
  return bit_cast<Vec<T>>(vqtbl2q_u8(entries, bit_cast<uint8x16_t>(bytes)));
#else
  Vec<T> result;
  for (int i = 0; i < kLanes<Vec<T>>; ++i) result[i] = table[index[i] & 7];
  return result;
#endif
}

// Concatenates two vectors of half the size.
template <class V, class Half>
DMLOPS_INLINE_SMALL V join(Half low, Half high) {
  static_assert(sizeof(V) == 2 * sizeof(Half), "halves");
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64)
    return bit_cast<V>(_mm512_inserti64x4(_mm512_castsi256_si512(bit_cast<__m256i>(low)),
                                          bit_cast<__m256i>(high), 1));
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32)
    return bit_cast<V>(_mm256_inserti128_si256(_mm256_castsi128_si256(bit_cast<__m128i>(low)),
                                               bit_cast<__m128i>(high), 1));
#endif
  const Half halves[] = {low, high};
  V v;
  std::memcpy(&v, halves, sizeof v);
  return v;
}

DMLOPS_INLINE_SMALL f32x abs(f32x x) { return bit_cast<f32x>(bit_cast<i32x>(x) & 0x7fffffff); }

// The larger of |x| and `bound`, which is not negative. Unspecified for NaN.
DMLOPS_INLINE_SMALL f32x max_abs(f32x x, f32x bound) {
#if defined(__AVX512DQ__)
  return _mm512_range_ps(x, bound, 0b1011);  // maximum of absolute values, without the sign
#else
  return max(bound, abs(x));
#endif
}

// True if any lane has any of the mask's bits.
DMLOPS_INLINE_SMALL bool any_bit(u32x x, std::uint32_t mask) {
  const u32x masks = splat<u32x>(mask);
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask(bit_cast<__m512i>(x), bit_cast<__m512i>(masks)) != 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256(bit_cast<__m256i>(x), bit_cast<__m256i>(masks)) == 0;
#elif defined(__aarch64__)
  return vmaxvq_u32(bit_cast<uint32x4_t>(x & masks)) != 0;
#else
  const __m128i none = _mm_cmpeq_epi32(bit_cast<__m128i>(x & masks), _mm_setzero_si128());
  return _mm_movemask_epi8(none) != 0xffff;
#endif
}

// True if any lane of a mask of lanes is set.
template <class Mask>
DMLOPS_INLINE_SMALL bool any_lane(Mask mask) {
  return any_bit(bit_cast<u32x>(mask), ~0u);
}

// -|x|
DMLOPS_INLINE_SMALL f32x minus_abs(f32x x) { return bit_cast<f32x>(bit_cast<i32x>(x) | INT32_MIN); }

// |x| with the sign of `sign`.
DMLOPS_INLINE_SMALL f32x copysign(f32x x, f32x sign) {
  const i32x mask = splat<i32x>(INT32_MIN);
  return bit_cast<f32x>((bit_cast<i32x>(x) & ~mask) | (bit_cast<i32x>(sign) & mask));
}

#if defined(__AVX512F__)
// The table of VFIXUPIMM, which replaces numbers by class. Digits from the right: quiet and
// signaling NaN, zero, one, -infinity, infinity, other negative and positive numbers. Values: 0 is
// the canonical NaN, 1 the number itself, 8 is +0.
DMLOPS_INLINE_SMALL f32x by_class(f32x x, int table) {
  const __m512i nan = _mm512_set1_epi32(0x7fc00000);
  return _mm512_fixupimm_ps(_mm512_castsi512_ps(nan), x, _mm512_set1_epi32(table), 0);
}
#endif

// Replaces NaN by one canonical NaN, since the sign and payload of NaN results depend on processor
// and operand order.
DMLOPS_INLINE_SMALL f32x canonical_nan(f32x x) {
#if defined(__AVX512F__)
  return by_class(x, 0x11111100);
#else
  return x == x ? x : bit_cast<f32x>(splat<i32x>(0x7fc00000));
#endif
}

// x < 0 ? 0 : x, as the last step of a formula, combined with canonical_nan().
struct NotNegative {
  f32x x;
};
DMLOPS_INLINE_SMALL f32x canonical_nan(NotNegative v) {
#if defined(__AVX512F__)
  return by_class(v.x, 0x18181100);
#else
  return canonical_nan(max(v.x, splat<f32x>(0.0f)));
#endif
}

// The rounding error of sum = a + b (two-sum), exact unless the sum is infinite or NaN.
DMLOPS_INLINE_SMALL f32x sum_error(f32x a, f32x b, f32x sum) {
  const f32x virtual_a = sum - b;
  return (a - virtual_a) + (b - (sum - virtual_a));
}

DMLOPS_INLINE_SMALL f32x sqrt(f32x x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__aarch64__)
  return vsqrtq_f32(x);
#else
  return _mm_sqrt_ps(x);
#endif
}

DMLOPS_INLINE_SMALL f64x sqrt(f64x x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_pd(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_pd(x);
#elif defined(__aarch64__)
  return vsqrtq_f64(x);
#else
  return _mm_sqrt_pd(x);
#endif
}

}  // namespace dmlops::DMLOPS_TARGET
