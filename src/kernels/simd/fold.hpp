// All lanes of a vector in one.
#pragma once

#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

struct Addition {
  template <class V>
  DMLOPS_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};

// All lanes in one, by an operation whose order does not matter: quarters of 16 bytes first.
template <class V, class Operation>
DMLOPS_INLINE Lane<V> fold(V v, const Operation& operation) {
  using Quad = typename VectorOf<Lane<V>, 16>::type;
  alignas(kVectorBytes) Lane<V> lanes[kLanes<V>];
  store(lanes, v);
  Quad quad = load<Quad>(lanes);
  for (int i = kLanes<Quad>; i < kLanes<V>; i += kLanes<Quad>) {
    quad = operation(quad, load<Quad>(lanes + i));
  }
  const Lane<V> a = quad[0], b = quad[1], c = quad[2], d = quad[3];
  return operation(operation(a, b), operation(c, d));
}

// The lower (kHigh = 0) or upper halves of each 2 kHalf lanes of a, then of b.
template <int kHalf, int kHigh, class V, std::size_t... kIndex>
DMLOPS_INLINE V halves(V a, V b, std::index_sequence<kIndex...>) {
  constexpr std::size_t half = kHalf;
  return shuffle<(kIndex / half * 2 * half + kIndex % half + kHigh * half)...>(a, b);
}

// Of 2 kHalf vectors, kLanes<V> to begin with: lane i of the result is all of vector i in one, by
// an operation of each lane and the one half as many lanes on, then a quarter, and so on.
template <int kHalf, class V, class Operation>
DMLOPS_INLINE V fold_rows(V* rows, const Operation& operation) {
  constexpr auto lanes = std::make_index_sequence<std::size_t{kLanes<V>}>();
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

// A vector for each of many sums, whose lanes become one value. Folding as many as a vector has
// lanes takes few more steps than folding one.
template <class V, int kCapacity>
class Folding {
 public:
  DMLOPS_INLINE void set(std::int64_t k, V v) { store(rows_[k], v); }

  // The values from k on, of `count` that were set; lanes beyond them get some value of these.
  template <class Operation>
  DMLOPS_INLINE V fold(std::int64_t k, std::int64_t count, const Operation& operation) const {
    V rows[kLanes<V>];
    for (int i = 0; i < kLanes<V>; ++i) rows[i] = load<V>(rows_[min(k + i, count - 1)]);
    return fold_rows<kLanes<V> / 2>(rows, operation);
  }

 private:
  alignas(kVectorBytes) Lane<V> rows_[kCapacity][kLanes<V>];
};

}  // namespace dmlops::DMLOPS_TARGET
