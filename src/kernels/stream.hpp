// Dense runs: applies a formula to one vector after another, with no scalar tail.
#pragma once

#include "simd/convert.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kUnalignedVectors = 16;  // shorter runs are not worth a head

// How many elements of a vector lie before the next aligned one; all where it begins aligned.
template <class V, class T>
DMLOPS_INLINE std::int64_t distance_to_alignment(const T* target) {
  constexpr std::int64_t size = sizeof(T), bytes = kLanes<V> * size;
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(target) % bytes);
  return (bytes - address) / size;
}

// target[i] = formula(source[i]) for i < count; `formula(vector, i)` also learns the index of its
// first element, and must be safe to evaluate on zeros. `source` is `target` or does not overlap
// it. Unrolling pays for formulas of a few operations only, since a processor overlaps the rounds
// of a loop by itself.
template <class V, int kUnroll, class T, class Formula>
DMLOPS_INLINE void stream(T* target, const T* source, std::int64_t count, const Formula& formula) {
  constexpr std::int64_t lanes = kLanes<V>;
  // The first and the last vector overlap their neighbours, so that whole vectors cover every
  // length and those between them are aligned in the target. Both are computed first and stored
  // last: in place, the elements that they share would otherwise be read again after they were
  // written.
  const std::int64_t last = count - lanes;
  const bool whole = last >= 0;
  const auto rest = static_cast<std::size_t>(count);
  const V tail =
      formula(whole ? load<V>(source + last) : load_partial<V>(source, rest), whole ? last : 0);
  if (!whole) return store_partial(target, tail, rest);
  std::int64_t i = 0;
  V head = tail;
  const bool short_run = count < kUnalignedVectors * lanes;
  if (!short_run) {
    head = formula(load<V>(source), 0);
    i = distance_to_alignment<V>(target);
  }
  if constexpr (kUnroll > 1) {
    for (; i + kUnroll * lanes <= count; i += kUnroll * lanes) {
      V results[kUnroll];
      for (int k = 0; k < kUnroll; ++k)
        results[k] = formula(load<V>(source + i + k * lanes), i + k * lanes);
      for (int k = 0; k < kUnroll; ++k) store(target + i + k * lanes, results[k]);
    }
  }
  for (; i < last; i += lanes) store(target + i, formula(load<V>(source + i), i));
  if (!short_run) store(target, head);
  store(target + last, tail);
}

}  // namespace dmlops::DMLOPS_TARGET
