// Packs a row of any layout into a dense row, for elements of 1, 2, 4 or 8 bytes.
#pragma once

#include "kernels/blocks/elements.hpp"
#include "kernels/blocks/memory.hpp"
#include "kernels/kernel.hpp"
#include "kernels/simd/partial.hpp"
#include "kernels/simd/shuffle.hpp"

namespace dmlops::DMLOPS_TARGET {

// memcpy without a call for short runs.
DMLOPS_INLINE void copy_run(char* target, const char* source, std::int64_t bytes) {
  using V = Vec<std::uint8_t>;
  constexpr std::int64_t step = sizeof(V);
  if (bytes >= step) {
    std::int64_t i = 0;
    if (bytes > 8 * step) {
      store_element(target, load_element<V>(source));
      i = step - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(target) % sizeof(V));
    }
    for (; i < bytes - step; i += step) store_element(target + i, load_element<V>(source + i));
    store_element(target + bytes - step, load_element<V>(source + bytes - step));
  } else {
    copy_short(target, source, bytes);
  }
}

// Copies by non-temporal stores, except to cache lines that the target shares with other data.
// Prefetches the same number of bytes at `ahead`, since non-temporal stores make the hardware
// prefetcher less effective.
inline void copy_streaming(char* target, const char* source, std::int64_t bytes,
                           const char* ahead = nullptr) {
  constexpr std::int64_t step = sizeof(u8x);
  const std::int64_t head = min((kLineBytes - bytes_past_line(target)) % kLineBytes, bytes);
  const std::int64_t end = head + (bytes - head) / kLineBytes * kLineBytes;
  if (head != 0) copy_run(target, source, head);
  for (std::int64_t i = head; i < end; i += step) {
    if (ahead != nullptr) __builtin_prefetch(ahead + i);
    store_non_temporal(reinterpret_cast<std::uint8_t*>(target + i), load_element<u8x>(source + i));
  }
  if (end != bytes) copy_run(target + end, source + end, bytes - end);
}

template <class U>
DMLOPS_INLINE void fill_row(char* target, std::int64_t bytes, U value) {
  using V = Vec<U>;
  constexpr std::int64_t step = sizeof(V);
  const V values = splat<V>(value);
  if (bytes >= step) {
    for (std::int64_t i = 0; i + step < bytes; i += step) store_element(target + i, values);
    store_element(target + bytes - step, values);
  } else {
    alignas(kVectorBytes) char filled[sizeof(V)];
    store_element(filled, values);
    copy_short(target, filled, bytes);
  }
}

// Copies runs of `bytes` between a buffer, `pitch` bytes apart, and memory at `offsets`.
template <bool kUnpack, class Offsets>
DMLOPS_NO_INLINE void copy_runs(char* target, const char* source, Offsets offsets,
                                std::int64_t count, std::int64_t bytes, std::int64_t pitch) {
  const auto copy_each = [=](const auto& copy) DMLOPS_LAMBDA_INLINE {
#pragma GCC unroll 2  // as in pack_words()
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t buffered = i * pitch;
      copy(target + (kUnpack ? offsets[i] : buffered), source + (kUnpack ? buffered : offsets[i]));
    }
  };
  // Copies a run as its first and its last vector.
  const auto by_ends = [=](auto v) DMLOPS_LAMBDA_INLINE {
    using V = decltype(v);
    if (bytes == sizeof(V))
      return copy_each([](char* to, const char* from)
                           DMLOPS_LAMBDA_INLINE { store_element(to, load_element<V>(from)); });
    copy_each([bytes](char* to, const char* from)
                  DMLOPS_LAMBDA_INLINE { copy_ends<V>(to, from, bytes); });
  };
  if (bytes > 2 * kVectorBytes)
    return copy_each([bytes](char* to, const char* from)
                         DMLOPS_LAMBDA_INLINE { copy_run(to, from, bytes); });
  if (kVectorBytes > 32 && bytes >= 64) return by_ends(typename VectorOf<std::uint8_t, 64>::type());
  if (kVectorBytes > 16 && bytes >= 32) return by_ends(typename VectorOf<std::uint8_t, 32>::type());
  if (bytes >= 16) return by_ends(Bytes16());
  if (bytes >= 8) return by_ends(std::uint64_t());
  if (bytes >= 4) return by_ends(std::uint32_t());
  by_ends(std::uint16_t());
}

// Packs the elements at `offsets` into a dense row. Assembles words of 8 bytes, since store
// throughput is lower than that of shifts.
template <class U, class Offsets>
DMLOPS_INLINE void pack_words(char* target, std::int64_t length, const char* source,
                              Offsets offsets) {
  constexpr std::int64_t size = sizeof(U), count = 8 / size;
  std::int64_t i = 0;
#pragma GCC unroll 2  // against the effect of the loop's place in memory
  for (; i + count <= length; i += count) {
    std::uint64_t word = 0;
#pragma GCC unroll 16
    for (std::int64_t j = 0; j < count; ++j)
      word |= std::uint64_t{load_element<U>(source + offsets[i + j])} << (8 * size * j);
    store_element(target + i * size, word);
  }
  for (; i < length; ++i) store_element(target + i * size, load_element<U>(source + offsets[i]));
}

// The inverse of pack_words().
template <class U, class Offsets>
DMLOPS_INLINE void unpack_words(char* target, Offsets offsets, const char* source,
                                std::int64_t length) {
  constexpr std::int64_t size = sizeof(U), count = 8 / size;
  std::int64_t i = 0;
  for (; i + count <= length; i += count) {
    const auto word = load_element<std::uint64_t>(source + i * size);
#pragma GCC unroll 16
    for (std::int64_t j = 0; j < count; ++j)
      store_element(target + offsets[i + j], static_cast<U>(word >> (8 * size * j)));
  }
  for (; i < length; ++i) store_element(target + offsets[i], load_element<U>(source + i * size));
}

template <int kFirst, class V, std::size_t... kIndex>
DMLOPS_INLINE V every_second(V a, V b, std::index_sequence<kIndex...>) {
  return shuffle<(2 * kIndex + kFirst)...>(a, b);
}

template <int kFirst = 0, class V>
DMLOPS_INLINE V every_second(V a, V b) {
  return every_second<kFirst>(a, b, std::make_index_sequence<std::size_t{kLanes<V>}>());
}

// Loads every second element of two vectors of memory, from element kFirst on.
template <class V, int kFirst = 0>
DMLOPS_INLINE V load_every_second(const char* source) {
  const V a = load_element<V>(source), b = load_element<V>(source + sizeof(V));
  constexpr std::size_t size = sizeof(Lane<V>);
  if constexpr (kFirst == 1 && size <= 2) {  // compilers split this shuffle into scalar moves
    using Pairs = typename VectorOf<typename UnsignedOf<2 * size>::type, sizeof(V)>::type;
    return every_second<0>(bit_cast<V>(bit_cast<Pairs>(a) >> 8 * size),
                           bit_cast<V>(bit_cast<Pairs>(b) >> 8 * size));
  } else {
    return every_second<kFirst>(a, b);
  }
}

template <class V, std::size_t... kIndex>
DMLOPS_INLINE V reversed(V v, std::index_sequence<kIndex...>) {
  return shuffle<(sizeof...(kIndex) - 1 - kIndex)...>(v, v);
}

// Loads a vector in reverse order, from its last element on.
template <class V>
DMLOPS_INLINE V load_reversed(const char* last) {
  constexpr std::size_t lanes = kLanes<V>;
  const V v = load_element<V>(last - (lanes - 1) * sizeof(Lane<V>));
  return reversed(v, std::make_index_sequence<lanes>());
}

#if defined(DMLOPS_HAS_BYTE_SHUFFLE)
constexpr bool kShufflesBytes = true;

// Indices for shuffle_bytes() that select every kStep-th element of a window of 16 * kStep bytes,
// in forward or reverse order.
template <int kSize, int kStep>
struct StepMasks {
  alignas(16) std::uint8_t bytes[2][kStep][16] = {};

  constexpr StepMasks() {
    for (int reverse = 0; reverse < 2; ++reverse) {
      for (int k = 0; k < kStep; ++k) {
        for (int i = 0; i < 16; ++i) {
          const int element = i / kSize * kStep * kSize;
          const int place =
              (reverse != 0 ? 16 * kStep - kSize - element : element) + i % kSize - 16 * k;
          bytes[reverse][k][i] = static_cast<std::uint8_t>(place >= 0 && place < 16 ? place : 0x80);
        }
      }
    }
  }
};
template <int kSize, int kStep>
inline constexpr StepMasks<kSize, kStep> kStepMasks;

template <class U, int kStep>
DMLOPS_INLINE std::int64_t pack_shuffled(char* target, std::int64_t length, const char* source,
                                         std::int64_t step) {
  constexpr std::int64_t size = sizeof(U), lanes = 16 / size;
  Bytes16 masks[kStep];
#pragma GCC unroll 16
  for (int k = 0; k < kStep; ++k)
    masks[k] = load<Bytes16>(kStepMasks<size, kStep>.bytes[step < 0 ? 1 : 0][k]);
  // A reverse window ends at its first element.
  const char* window = step < 0 ? source + size - 16 * kStep : source;
  std::int64_t i = 0;
  // A window extends less than a step past its last element, so the last one is excluded.
  for (; i + lanes < length; i += lanes, window += lanes * step) {
    Bytes16 result = shuffle_bytes(load_element<Bytes16>(window), masks[0]);
#pragma GCC unroll 16
    for (int k = 1; k < kStep; ++k)
      result |= shuffle_bytes(load_element<Bytes16>(window + 16 * k), masks[k]);
    store_element(target + i * size, result);
  }
  return i;
}
#else
constexpr bool kShufflesBytes = false;
#endif

// True if a shuffle reverses a whole vector.
template <class U>
constexpr bool kReversesVectors = sizeof(U) >= (kVectorBytes == 64 ? 2 : 4);

// The shortest reversed row, in vectors, whose last vector overlaps the previous one. Shorter rows
// are loaded so soon afterwards that stores that overlap would delay the loads.
constexpr std::int64_t kShortestOverlap = 4;

// Packs elements `step` bytes apart into a dense row.
template <class U>
DMLOPS_INLINE void pack_strided(char* target, std::int64_t length, const char* source,
                                std::int64_t step) {
  using V = Vec<U>;
  constexpr std::int64_t size = sizeof(U), lanes = kLanes<V>;
  std::int64_t i = 0;
  if (step == 2 * size) {
    for (; i + lanes < length; i += lanes)
      store_element(target + i * size, load_every_second<V>(source + i * step));
  } else if (step == 4 * size) {
    for (; i + lanes < length; i += lanes) {
      const char* const window = source + i * step;
      store_element(target + i * size, every_second(load_every_second<V>(window),
                                                    load_every_second<V>(window + 2 * sizeof(V))));
    }
  } else if (step == -size && kReversesVectors<U>) {
    for (; i + lanes <= length; i += lanes)
      store_element(target + i * size, load_reversed<V>(source - i * size));
    if (i >= kShortestOverlap * lanes && i < length) {
      i = length - lanes;
      return store_element(target + i * size, load_reversed<V>(source - i * size));
    }
  }
#if defined(DMLOPS_HAS_BYTE_SHUFFLE)
  if (size < 8 && length - i > 16 / size) {
    char* const next = target + i * size;
    const char* const from = source + i * step;
    switch (abs(step)) {
      case 1 * size:
        i += pack_shuffled<U, 1>(next, length - i, from, step);
        break;
      case 2 * size:
        i += pack_shuffled<U, 2>(next, length - i, from, step);
        break;
      case 3 * size:
        i += pack_shuffled<U, 3>(next, length - i, from, step);
        break;
      case 4 * size:
        i += pack_shuffled<U, 4>(next, length - i, from, step);
        break;
      default:
        break;
    }
  }
#endif
  pack_words<U>(target + i * size, length - i, source + i * step, SteppedOffsets{step});
}

// Packs elements `step` bytes apart. Not inlined, since the loop has many forms.
template <class U>
DMLOPS_NO_INLINE void pack_column(char* target, std::int64_t length, const char* source,
                                  std::int64_t step) {
  pack_strided<U>(target, length, source, step);
}

}  // namespace dmlops::DMLOPS_TARGET
