// Transforms of two inputs.
#pragma once

#include "kernels/blocks/transform_across.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kPairs = kForSize ? 1 : 4;  // vectors of each input in an iteration

// Loads an element into each lane.
template <class V, class T>
DMLOPS_INLINE V load_broadcast(const T* source) {
  using U = Bits<T>;
  const auto elements = splat<typename VectorOf<U, kLanes<V> * sizeof(T)>::type>(
      load_element<U>(reinterpret_cast<const char*>(source)));
  return load<V>(reinterpret_cast<const T*>(&elements));
}

// Pointers to the elements of both inputs, and a vector of each.
template <class T>
struct Pair {
  const T *first, *second;

  DMLOPS_INLINE Pair operator+(std::int64_t i) const { return {first + i, second + i}; }
};
template <class V>
struct PairOf {
  V first, second;
};
// Loads both vectors unconditionally: GCC would load the second one under a mask that depends on
// the first one, and their cache misses would not overlap.
template <class V, class T>
DMLOPS_INLINE PairOf<V> load(Pair<T> source) {
  PairOf<V> pair = {load<V>(source.first), load<V>(source.second)};
  keep_in_register(pair.first);
  keep_in_register(pair.second);
  return pair;
}
template <class V, class T>
DMLOPS_INLINE PairOf<V> load_partial(Pair<T> source, std::int64_t count) {
  return {load_partial<V>(source.first, count), load_partial<V>(source.second, count)};
}
template <class V, class T>
DMLOPS_INLINE PairOf<V> load_last(Pair<T> source) {
  return load<V>(source);
}
template <class T>
constexpr bool reads_past(Pair<T>) {
  return false;
}
template <class V, class T>
DMLOPS_INLINE void prefetch_streamed(Pair<T> source, std::int64_t bytes) {
  prefetch_streamed<V>(source.first, kPairsFurther * bytes);
  prefetch_streamed<V>(source.second, kPairsFurther * bytes);
}
template <class T>
DMLOPS_INLINE bool stalls_forwards(const T* target, Pair<T> source) {
  return trails_closely(target, source.first) || trails_closely(target, source.second);
}

// True if the hardware prefetcher does not follow an input from row to row.
DMLOPS_INLINE bool prefetches_rows(const Block& block, std::int64_t size) {
  const std::int64_t bytes = block.length * size;
  const auto are_distant = [bytes](const DenseRows<const char>& rows) {
    return abs(rows.pitch) >= bytes + kLargestGap;
  };
  return !kForSize && bytes <= kLongestPrefetched &&
         (are_distant(block.inputs[0]) || are_distant(block.inputs[1])) &&
         block.inputs[0].offsets == nullptr && block.inputs[1].offsets == nullptr;
}

// An element of a row in each lane.
template <class V>
struct RowConstant {
  V value;

  // Returns the first `count` lanes, then those of `next`.
  DMLOPS_INLINE RowConstant before(std::int64_t count, const RowConstant& next) const {
    using U = Bits<std::decay_t<decltype(value[0])>>;
    Vec<U> lanes;
    for (std::int64_t k = 0; k < kLanes<V>; ++k) lanes[k] = static_cast<U>(k);
    return {lanes < splat<Vec<U>>(static_cast<U>(count)) ? value : next.value};
  }
};

// Transforms contiguous rows with one element each of an input, which is constant along them.
template <int kConstant, bool kStreaming, class T, class V, class Formula>
DMLOPS_NO_INLINE void transform_pairs_across(const Block& rows, const Formula formula) {
  constexpr int kVarying = kConstant == 1 ? 1 : 0;
  const DenseRows<const char> constants = rows.inputs[1 - kVarying];
  transform_across<kStreaming, V>(
      reinterpret_cast<T*>(rows.output.data),
      reinterpret_cast<const T*>(rows.inputs[kVarying].data), rows.length, rows.count,
      [&](std::int64_t r) DMLOPS_LAMBDA_INLINE {
        return RowConstant<V>{load_broadcast<V>(reinterpret_cast<const T*>(constants[r]))};
      },
      [&](const RowConstant<V>& constant, V v) DMLOPS_LAMBDA_INLINE {
        return kConstant == 1 ? formula(constant.value, v) : formula(v, constant.value);
      });
}

// Vectors of longer rows gain more from transform_row(), which computes several in an iteration.
constexpr std::int64_t kMostAcross = 32, kMostShared = 16;

// Transforms contiguous rows with the same row of the second input.
template <bool kStreaming, class T, class V, class Formula>
DMLOPS_NO_INLINE void transform_pairs_of_columns(const Block& rows, const Formula formula) {
  const std::int64_t length = rows.length, bytes = length * std::int64_t{sizeof(T)};
  alignas(kVectorBytes) T second[(kMostShared + 1) * kLanes<V>];
  copy_run(reinterpret_cast<char*>(second), rows.inputs[1].data, bytes);
  store(second + length, load<V>(second));
  transform_across_columns<kStreaming, V>(
      reinterpret_cast<T*>(rows.output.data), reinterpret_cast<const T*>(rows.inputs[0].data),
      length, rows.count,
      [&](std::int64_t column, V v)
          DMLOPS_LAMBDA_INLINE { return formula(v, load<V>(second + column)); },
      [](std::int64_t i) DMLOPS_LAMBDA_INLINE { return i; });
}
// True for enough contiguous rows with the same row of the second input.
template <class V, class T>
bool shares_second(const Block& rows) {
  return rows.count >= 4 && rows.length < kMostShared * kLanes<V> &&
         rows.inputs[1].is_contiguous(0) && crosses_rows<V, T, T>(rows, false);
}

// Transforms of elements of type T by a formula on vectors of type V. `kConstant`: the input whose
// element is constant along a row, and kept in a register, or 0. `kStreaming`: writes by
// non-temporal stores.
template <int kConstant, bool kStreaming, class T, class V, class Formula>
DMLOPS_INLINE void transform_rows_of_pairs(const Block& given, const void* context) {
  const Formula formula = *static_cast<const Formula*>(context);
  const Block block = given;
  if constexpr (kConstant != 0) {
    if (block.length <= kMostAcross * kLanes<V> &&
        crosses_rows<V, T, T>(block, false, kConstant == 1 ? 1 : 0))
      return transform_pairs_across<kConstant, kStreaming, T, V>(block, formula);
  } else if constexpr (!kForSize) {
    if (shares_second<V, T>(block))
      return transform_pairs_of_columns<kStreaming, T, V>(block, formula);
  }
  const bool prefetches = kConstant == 0 && !kStreaming && prefetches_rows(block, sizeof(T));
  const auto transform = [&block](T* output, auto input, const auto& of) DMLOPS_LAMBDA_INLINE {
    if constexpr (kStreaming) {
      stream_row<V>(output, input, block.length, of);
    } else {
      transform_row<V, kPairs>(output, input, block.length, of);
    }
  };
  for (std::int64_t r = 0; r < block.count; ++r) {
    if (prefetches) {
      const std::int64_t bytes = block.length * std::int64_t{sizeof(T)};
      for (const auto& rows : block.inputs)
        prefetch_lines(rows.data + (r + kRowsAhead) * rows.pitch, bytes);
    }
    T* const output = reinterpret_cast<T*>(block.output[r]);
    const Pair<T> inputs{reinterpret_cast<const T*>(block.inputs[0][r]),
                         reinterpret_cast<const T*>(block.inputs[1][r])};
    if constexpr (kConstant != 0) {
      const V constant = load_broadcast<V>(kConstant == 1 ? inputs.first : inputs.second);
      transform(output, kConstant == 1 ? inputs.second : inputs.first,
                [&](V v, std::int64_t) DMLOPS_LAMBDA_INLINE {
                  return kConstant == 1 ? formula(constant, v) : formula(v, constant);
                });
    } else {
      transform(output, inputs, [&](const PairOf<V>& pair, std::int64_t) DMLOPS_LAMBDA_INLINE {
        return formula(pair.first, pair.second);
      });
    }
  }
}
template <bool kStreaming, class T, class V, class Formula>
void transform_pairs(const Block& block, const void* context) {
  if constexpr (!kForSize) {
    if (block.constant == 1)
      return transform_rows_of_pairs<1, kStreaming, T, V, Formula>(block, context);
    if (block.constant == 2)
      return transform_rows_of_pairs<2, kStreaming, T, V, Formula>(block, context);
  }
  transform_rows_of_pairs<0, kStreaming, T, V, Formula>(block, context);
}

// A scalar transform. Compilers vectorize the loop over a chunk, whose length is constant.
template <class T, class Formula>
void transform_pairs_of_elements(const Block& given, const void* context) {
  const Formula formula = *static_cast<const Formula*>(context);
  const Block block = given;
  constexpr std::int64_t kChunk = kLineBytes / std::int64_t{sizeof(T)};
  const auto copy = [](T* to, const T* from, std::int64_t count) DMLOPS_LAMBDA_INLINE {
    if (count == kChunk) {
      std::memcpy(to, from, kLineBytes);
    } else {
      std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
    }
  };
  T inputs[kMaxInputs][kChunk] = {}, results[kChunk];
  for (std::int64_t r = 0; r < block.count; ++r) {
    if (block.constant != 0) {
      const T constant = load_element<T>(block.inputs[block.constant - 1][r]);
      for (T& element : inputs[block.constant - 1]) element = constant;
    }
    T* const output = reinterpret_cast<T*>(block.output[r]);
    for (std::int64_t i = 0; i < block.length; i += kChunk) {
      const std::int64_t count = min(kChunk, block.length - i);
      for (int k = 0; k < kMaxInputs; ++k) {
        if (block.constant != k + 1)
          copy(inputs[k], reinterpret_cast<const T*>(block.inputs[k][r]) + i, count);
      }
      for (std::int64_t k = 0; k < kChunk; ++k) results[k] = formula(inputs[0][k], inputs[1][k]);
      copy(output + i, results, count);
    }
  }
}

// Applies a formula on vectors of type V to every pair of elements.
template <class T, class V, class Formula>
DMLOPS_INLINE void map_pairs(const Rows& rows, const Formula& formula) {
  Transforms transforms = {&transform_pairs<false, T, V, Formula>};
  if constexpr (!kForSize) transforms.streaming = &transform_pairs<true, T, V, Formula>;
  traverse(rows, {sizeof(T), transforms, &formula, true, 2});
}
template <class T, class Formula>
DMLOPS_INLINE void map_pairs_of_elements(const Rows& rows, const Formula& formula) {
  traverse(rows, {sizeof(T), {&transform_pairs_of_elements<T, Formula>}, &formula, true, 2});
}

}  // namespace dmlops::DMLOPS_TARGET
