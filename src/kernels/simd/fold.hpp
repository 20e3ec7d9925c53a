// Horizontal reductions of vectors.
#pragma once

#include "kernels/simd/convert.hpp"

namespace dmlops::DMLOPS_TARGET {

struct Addition {
  template <class V>
  DMLOPS_INLINE_SMALL V operator()(V a, V b) const {
    return a + b;
  }
};

// Both return the first of equal or unordered arguments.
struct Minimum {
  template <class V>
  DMLOPS_INLINE_SMALL V operator()(V a, V b) const {
    return b < a ? b : a;
  }
};
struct Maximum {
  template <class V>
  DMLOPS_INLINE_SMALL V operator()(V a, V b) const {
    return a < b ? b : a;
  }
};

// Reduces all lanes by an associative and commutative operation, first vectors of 16 bytes, then
// their lanes.
template <class V, class Operation>
DMLOPS_INLINE_SMALL Lane<V> fold(V v, const Operation& operation) {
  using Quad = typename VectorOf<Lane<V>, 16>::type;
  alignas(kVectorBytes) Lane<V> lanes[kLanes<V>];
  store(lanes, v);
  Quad quad = load<Quad>(lanes);
#pragma GCC unroll 16
  for (int i = kLanes<Quad>; i < kLanes<V>; i += kLanes<Quad>) {
    quad = operation(quad, load<Quad>(lanes + i));
  }
  const Lane<V> a = quad[0], b = quad[1], c = quad[2], d = quad[3];
  return operation(operation(a, b), operation(c, d));
}

// Adds the second half of the vectors to the first, down to one vector.
template <std::size_t kVectors, class V>
DMLOPS_INLINE_SMALL V add_halves(V (&sums)[kVectors]) {
#pragma GCC unroll 16
  for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
  }
  return sums[0];
}

// Concatenates the lower (kHigh = 0) or upper halves of each 2 kHalf lanes of a and of b.
template <int kHalf, int kHigh, class V, std::size_t... kIndex>
DMLOPS_INLINE_SMALL V halves(V a, V b, std::index_sequence<kIndex...>) {
  constexpr std::size_t half = kHalf;
  return shuffle<(kIndex / half * 2 * half + kIndex % half + kHigh * half)...>(a, b);
}

// Reduces 2 kHalf vectors, initially kLanes<V>, to one, whose lane i is the reduction of vector i.
// Each round combines the halves of the lanes that remain of each vector.
template <int kHalf, class V, class Operation>
DMLOPS_INLINE_SMALL V fold_rows(V* rows, const Operation& operation) {
  constexpr auto lanes = std::make_index_sequence<std::size_t{kLanes<V>}>();
#pragma GCC unroll 16
  for (int i = 0; i < kHalf; ++i) {
    const V a = rows[2 * i], b = rows[2 * i + 1];
    rows[i] = operation(halves<kHalf, 0>(a, b, lanes), halves<kHalf, 1>(a, b, lanes));
  }
  if constexpr (kHalf == 1) {
    return rows[0];
  } else {
    return fold_rows<kHalf / 2>(rows, operation);
  }
}

// Reduces the vectors lanes(0), ..., lanes(count - 1) to target[0], ..., whose capacity is a
// multiple of the lanes: several vectors at once take few more steps than one.
template <class T, class Operation, class Lanes>
DMLOPS_INLINE_SMALL void fold_groups(T* target, std::int64_t count, const Operation& operation,
                                     const Lanes& lanes) {
  using V = decltype(lanes(count));
  for (std::int64_t k = 0; k < count; k += kLanes<V>) {
    V rows[kLanes<V>];
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kLanes<V>; ++i) rows[i] = lanes(min(k + i, count - 1));
    const V folded = fold_rows<kLanes<V> / 2>(rows, operation);
    if constexpr (std::is_same_v<T, Lane<V>>) {
      store(target + k, folded);
    } else {
      for (int i = 0; i < kLanes<V>; ++i) target[k + i] = static_cast<T>(folded[i]);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
