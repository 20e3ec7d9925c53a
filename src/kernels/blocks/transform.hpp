// Transforms: loops that apply a formula to dense blocks vector by vector, without scalar tails.
#pragma once

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/pack.hpp"
#include "kernels/blocks/traverse.hpp"
#include "kernels/simd/partial.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kUnalignedVectors = 4;  // rows up to this length need no aligned start

// Returns the number of elements before the next aligned vector; a whole vector if the target is
// aligned.
template <class V, class T>
DMLOPS_INLINE std::int64_t distance_to_alignment(const T* target) {
  constexpr std::uintptr_t size = sizeof(T), lanes = kLanes<V>;
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(target) % (lanes * size);
  return static_cast<std::int64_t>(lanes - (past + size - 1) / size);
}

// A pointer to every second element. A vector is shuffled from two vectors of memory.
template <class T>
struct EverySecond {
  const char* begin;

  DMLOPS_INLINE EverySecond operator+(std::int64_t i) const {
    return {begin + i * std::int64_t{2 * sizeof(T)}};
  }
};
template <class V, int kFirst = 0, class T>
DMLOPS_INLINE V load(EverySecond<T> source) {
  const auto elements =
      load_every_second<typename VectorOf<Bits<T>, kLanes<V> * sizeof(T)>::type, kFirst>(
          source.begin);
  return load<V>(reinterpret_cast<const T*>(&elements));
}
template <class V, class T>
DMLOPS_INLINE V load_partial(EverySecond<T> source, std::int64_t count) {
  T lanes[static_cast<std::size_t>(kLanes<V>)] = {};
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = load_element<T>((source + i).begin);
  return load<V>(lanes);
}

// True if a vector's load reads past its last element.
template <class T>
constexpr bool reads_past(const T*) {
  return false;
}
template <class T>
constexpr bool reads_past(EverySecond<T>) {
  return true;
}

// Loads the last vector of a row that has several, without reading past the row.
template <class V, class T>
DMLOPS_INLINE V load_last(const T* source) {
  return load<V>(source);
}
template <class V, class T>
DMLOPS_INLINE V load_last(EverySecond<T> source) {
  return load<V, 1>(EverySecond<T>{source.begin - sizeof(T)});
}

// True if a forward loop would stall on store-to-load aliasing at every vector: 4 to 10 times the
// time.
template <class T, class In>
DMLOPS_INLINE bool stalls_forwards(const T* target, const In* source) {
  return trails_closely(target, source);
}
template <class T, class In>
DMLOPS_INLINE bool stalls_forwards(const T*, EverySecond<In>) {
  return false;  // the distance changes by a vector per iteration, so aliasing does not persist
}

// target[i] = formula(source[i]) for i < count; `formula(vector, i)` also gets the index of its
// first element, and must be safe to evaluate on zeros. `source` is `target` or disjoint from it.
// Unrolling pays off for formulas of a few operations, and for long ones if the compiler
// interleaves the vectors (kUnrolled).
template <class V, int kUnroll, class T, class Input, class Formula>
DMLOPS_INLINE void transform_row(T* target, Input source, std::int64_t count,
                                 const Formula& formula) {
  constexpr std::int64_t lanes = kLanes<V>;
  // The first and the last vector overlap the adjacent ones, so that whole vectors cover every
  // length and those in between are aligned in the target. Both are computed first and stored last,
  // since in place the shared elements would otherwise be transformed twice.
  const std::int64_t last = count - lanes;
  const bool whole = last >= 0;
  const V tail = formula(whole ? load_last<V>(source + last) : load_partial<V>(source, count),
                         whole ? last : 0);
  if (!whole) return store_partial(target, tail, count);
  if (last == 0) return store(target, tail);
  std::int64_t i = 0;
  V head = tail;
  const bool short_row = count <= kUnalignedVectors * lanes;
  if (!short_row) {
    head = formula(load<V>(source), 0);
    i = distance_to_alignment<V>(target);
  }
  constexpr std::int64_t group = kUnroll * lanes;
  std::int64_t groups = (last - i + lanes - 1) / group;
  if (groups > 0) {
    const bool backwards = stalls_forwards(target, source);
    const std::int64_t step = backwards ? -group : group, end = i + groups * group;
    for (std::int64_t at = backwards ? end - group : i; groups > 0; --groups, at += step) {
      V results[kUnroll];
#pragma GCC unroll 16
      for (int k = 0; k < kUnroll; ++k)
        results[k] = formula(load<V>(source + at + k * lanes), at + k * lanes);
#pragma GCC unroll 16
      for (int k = 0; k < kUnroll; ++k) {
        store(target + at + k * lanes, results[k]);
        // Processors merge stores to a cache line in ascending order. A single store needs no
        // barrier, after which captured values would be loaded again.
        if constexpr (kUnroll > 1) __asm__("" : : : "memory");
      }
    }
    i = end;
  }
  if constexpr (kUnroll > 1) {
    for (; i < last; i += lanes) store(target + i, formula(load<V>(source + i), i));
  }
  if (!short_row) store(target, head);
  store(target + last, tail);
}

// Prefetches a vector of the input of non-temporal stores.
template <class V, class T>
DMLOPS_INLINE void prefetch_streamed(const T* source, std::int64_t bytes) {
  __builtin_prefetch(reinterpret_cast<const char*>(source) + bytes);
}
template <class V, class T>
DMLOPS_INLINE void prefetch_streamed(EverySecond<T> source, std::int64_t bytes) {
  __builtin_prefetch(source.begin + 2 * bytes);
  __builtin_prefetch(source.begin + 2 * bytes + kLanes<V> * std::int64_t{sizeof(T)});
}

// transform_row() of vectors by non-temporal stores, except to cache lines that the target shares
// with other data. The target's elements must be aligned.
template <class V, class T, class Input, class Formula>
DMLOPS_INLINE void stream_row(T* target, Input source, std::int64_t count, const Formula& formula) {
  constexpr std::int64_t lanes = kLanes<V>, size = sizeof(T), line = kLineBytes / size;
  const std::int64_t begun = bytes_past_line(target) / size;
  const std::int64_t begin = min((line - begun) % line, count);
  std::int64_t end = count - (count - begin) % line;
  // The last vector would read past the row.
  if (reads_past(source) && end == count && end > begin) end -= line;
  const bool backwards = stalls_forwards(target, source);
  const std::int64_t step = backwards ? -lanes : lanes;
  const std::int64_t ahead = backwards ? -kStreamedAhead : kStreamedAhead;
  std::int64_t i = backwards ? end - lanes : begin;
  for (std::int64_t vectors = (end - begin) / lanes; vectors > 0; --vectors, i += step) {
    prefetch_streamed<V>(source + i, ahead);
    store_non_temporal(target + i, formula(load<V>(source + i), i));
  }
  // The partial lines before and after.
  for (i = begin > 0 ? 0 : end; i < count;) {
    const std::int64_t used = min((i < begin ? begin : count) - i, lanes);
    const V result = formula(load_partial<V>(source + i, used), i);
    if (used == lanes) {
      store(target + i, result);
    } else {
      // Avoids masked stores, for which processors read both of the spanned cache lines, for any
      // mask.
      alignas(kVectorBytes) T results[lanes];
      store(results, result);
      copy_short(target + i, results, used * size);
    }
    i += used;
    if (i == begin) i = end;
  }
}

// The memory accesses of a loop.
enum class MemoryAccess : std::uint8_t {
  dense,
  every_second,  // reads every second element; writes by non-temporal stores if the rows do
  streaming,     // writes by non-temporal stores
};

// Transforms of elements of type T by a formula on vectors of type V. The formula is copied, so
// that stores cannot alias it and it stays in registers.
template <class T, class In, class V, int kUnroll, class Formula,
          MemoryAccess kAccess = MemoryAccess::dense>
void transform(const Block& block, const void* context) {
  const Formula formula = *static_cast<const Formula*>(context);
  const std::int64_t length = block.length;
  for (std::int64_t r = 0; r < block.count; ++r) {
    const In* const input = reinterpret_cast<const In*>(block.inputs[0][r]);
    T* const output = reinterpret_cast<T*>(block.output[r]);
    const auto indexed = [&formula](V v, std::int64_t) DMLOPS_LAMBDA_INLINE { return formula(v); };
    if constexpr (kAccess == MemoryAccess::streaming) {
      stream_row<V>(output, input, length, indexed);
    } else if constexpr (kAccess == MemoryAccess::every_second) {
      const EverySecond<In> every_second{block.inputs[0][r]};
      if (block.rows->streaming && length * std::int64_t{sizeof(T)} >= kShortestStreamedInPlace) {
        stream_row<V>(output, every_second, length, indexed);
      } else {
        transform_row<V, kUnroll>(output, every_second, length, indexed);
      }
    } else {
      transform_row<V, kUnroll>(output, input, length, indexed);
    }
  }
}

// A scalar transform. Compilers vectorize the loop over a chunk, whose length is constant.
template <class T, class Formula>
void transform_elements(const Block& given, const void* context) {
  const Formula formula = *static_cast<const Formula*>(context);
  const Block block = given;
  constexpr std::int64_t kChunk = sizeof(T) == 1 ? 64 : 32;
  T chunk[kChunk];
  for (std::int64_t r = 0; r < block.count; ++r) {
    T* const output = reinterpret_cast<T*>(block.output[r]);
    const T* const input = reinterpret_cast<const T*>(block.inputs[0][r]);
    std::int64_t i = 0;
    for (; i + kChunk <= block.length; i += kChunk) {
      std::memcpy(chunk, input + i, sizeof chunk);
      for (T& element : chunk) element = formula(element);
      std::memcpy(output + i, chunk, sizeof chunk);
    }
    if (i == block.length) continue;
    const std::size_t bytes = static_cast<std::size_t>(block.length - i) * sizeof(T);
    T padded[kChunk] = {};
    std::memcpy(padded, input + i, bytes);
    Block tail;
    tail.length = kChunk;
    tail.output.data = reinterpret_cast<char*>(padded);
    tail.inputs[0].data = tail.output.data;
    transform_elements<T, Formula>(tail, context);
    std::memcpy(output + i, padded, bytes);
  }
}

template <class T, class V, int kUnroll, class Formula, bool kIsLong>
constexpr Transforms transforms_of() {
  if constexpr (kForSize) {
    return {&transform<T, T, V, 1, Formula>};
  } else if constexpr (kIsLong) {
    return {&transform<T, T, V, kUnroll, Formula>};
  } else {
    return {&transform<T, T, V, kUnroll, Formula>,
            &transform<T, T, V, kUnroll, Formula, MemoryAccess::every_second>,
            &transform<T, T, V, kUnroll, Formula, MemoryAccess::streaming>};
  }
}

// Applies a formula on vectors of type V to every element. Long formulas have one loop.
template <class T, class V, int kUnroll, bool kIsLong = false, class Formula>
DMLOPS_INLINE void map(const Rows& rows, const Formula& formula) {
  static constexpr Transforms transforms = transforms_of<T, V, kUnroll, Formula, kIsLong>();
  traverse_elements(rows, sizeof(T), transforms, &formula);
}
template <class T, class Formula>
DMLOPS_INLINE void map_elements(const Rows& rows, const Formula& formula) {
  static constexpr Transforms transforms = {&transform_elements<T, Formula>};
  traverse_elements(rows, sizeof(T), transforms, &formula);
}

}  // namespace dmlops::DMLOPS_TARGET
