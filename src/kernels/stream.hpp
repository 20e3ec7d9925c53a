// Dense runs, and every second element: a formula on one vector after another, with no scalar tail.
#pragma once

#include "kernels/move.hpp"
#include "simd/convert.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kUnalignedVectors = 16;  // shorter runs are not worth a head

// How many of `unit` elements lie before the next aligned unit; all where they begin aligned.
template <class T>
DMLOPS_INLINE std::int64_t distance_to_unit(const T* target, std::int64_t unit) {
  constexpr std::uintptr_t size = sizeof(T);
  const auto place = reinterpret_cast<std::uintptr_t>(target);
  const std::uintptr_t past = place % (static_cast<std::uintptr_t>(unit) * size);
  return unit - static_cast<std::int64_t>((past + size - 1) / size);
}
template <class V, class T>
DMLOPS_INLINE std::int64_t distance_to_alignment(const T* target) {
  return distance_to_unit(target, kLanes<V>);
}

// Memory of which every second element counts. Vectors of them are shuffled from two of memory.
template <class T>
struct EverySecond {
  const char* begin;

  explicit EverySecond(const char* begin_) : begin(begin_) {}
  DMLOPS_INLINE EverySecond operator+(std::int64_t i) const {
    return EverySecond(begin + i * std::int64_t{2 * sizeof(T)});
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
DMLOPS_INLINE V load_partial(EverySecond<T> source, std::size_t count) {
  T lanes[static_cast<std::size_t>(kLanes<V>)] = {};
  for (std::size_t i = 0; i < count; ++i)
    lanes[i] = load_element<T>(source.begin + i * 2 * sizeof(T));
  return load<V>(lanes);
}

// A vector that nothing follows but that is not the first.
template <class V, class T>
DMLOPS_INLINE V load_last(const T* source) {
  return load<V>(source);
}
template <class V, class T>
DMLOPS_INLINE V load_last(EverySecond<T> source) {
  return load<V, 1>(EverySecond<T>(source.begin - sizeof(T)));
}

// Processors read ahead less while they write past the caches.
constexpr std::int64_t kReadAhead = 1024;  // bytes
template <class V, class T>
DMLOPS_INLINE void prefetch_vector(const T* source) {
  __builtin_prefetch(source);
}
template <class V, class T>
DMLOPS_INLINE void prefetch_vector(EverySecond<T> source) {
  __builtin_prefetch(source.begin);
  __builtin_prefetch(source.begin + kLanes<V> * sizeof(T));
}

// Does one lie a few bytes beyond the other but for whole MiB? Intel's processors compare the last
// 20 bits of addresses: a load that agrees in them with a store waits until that has written.
DMLOPS_INLINE bool is_just_beyond(const void* one, const void* other) {
  constexpr std::uintptr_t kCompared = 1 << 20, kNear = 1024;
  const auto distance =
      reinterpret_cast<std::uintptr_t>(one) - reinterpret_cast<std::uintptr_t>(other);
  return distance % kCompared - 1 < kNear;
}

// Should a loop go downwards? One that goes upwards waits at each vector where the output lies just
// beyond the input, as two arrays of a power of two that follow one another in a heap: 4 to 10
// times the time.
template <class T, class In>
DMLOPS_INLINE bool goes_down(const T* target, const In* source) {
  return is_just_beyond(target, source);
}
template <class T>
DMLOPS_INLINE bool goes_down(const T*, EverySecond<T>) {
  return false;
}

// Calls visit(i) for the begin of each of `groups` groups of elements from `begin` on.
template <class Visit>
DMLOPS_INLINE void for_each_group(std::int64_t begin, std::int64_t groups, std::int64_t group,
                                  bool down, const Visit& visit) {
  const std::int64_t step = down ? -group : group;
  for (std::int64_t i = down ? begin + (groups - 1) * group : begin; groups > 0; --groups) {
    visit(i);
    i += step;
  }
}

// target[i] = result(i) past the caches, for vectors of whole lines; result(i) reads source[i].
template <class V, class T, class Source, class Result>
DMLOPS_INLINE void store_lines(T* target, Source source, std::int64_t begin, std::int64_t end,
                               const Result& result) {
  constexpr std::int64_t lanes = kLanes<V>;
  const bool down = goes_down(target, source);
  const auto ahead = source + (down ? -kReadAhead : kReadAhead) / std::int64_t{sizeof(T)};
  for_each_group(begin, (end - begin) / lanes, lanes, down,
                 [&](std::int64_t i) DMLOPS_LAMBDA_INLINE {
                   prefetch_vector<V>(ahead + i);
                   store_non_temporal(target + i, result(i));
                 });
}

// stream() past the caches, of aligned elements: a vector at least, or some lie before `source`.
// Only whole lines go that way. What is left at both ends is written as usual, and no line is
// written in both ways: it would be read again.
template <class V, class T, class Source, class Formula>
DMLOPS_INLINE void stream_non_temporal(T* target, Source source, std::int64_t count,
                                       const Formula& formula) {
  constexpr std::int64_t lanes = kLanes<V>, size = sizeof(T), line = kLineBytes / size;
  const std::int64_t begin = least(distance_to_unit(target, line) % line, count);
  std::int64_t end = count - (count - begin) % line;
  if (end == count && !std::is_pointer_v<Source>) end -= line;  // what follows may not be read
  const std::int64_t edges[][2] = {{0, begin}, {end, count}};
  for (const auto& edge : edges) {
    for (std::int64_t first = edge[0]; first < edge[1]; first += lanes) {
      const std::int64_t i = least(first, count - lanes);
      const V v = formula(i + lanes == count ? load_last<V>(source + i) : load<V>(source + i), i);
      // Not by a masked store: processors read both lines that it spans, whatever the mask.
      alignas(kVectorBytes) T elements[lanes];
      store(elements, v);
      const std::int64_t written = least(edge[1], i + lanes) - first;
      std::memcpy(target + first, elements + (first - i), static_cast<std::size_t>(written * size));
    }
  }
  store_lines<V>(target, source, begin, end, [&](std::int64_t i) DMLOPS_LAMBDA_INLINE {
    return formula(load<V>(source + i), i);
  });
}

// target[i] = formula(source[i]) for i < count; `formula(vector, i)` also learns the index of its
// first element, and must be safe to evaluate on zeros. `source` is `target` or does not overlap
// it. Unrolling pays for formulas of a few operations only, since a processor overlaps the rounds
// of a loop by itself.
template <class V, int kUnroll, class T, class Source, class Formula>
DMLOPS_INLINE void stream(T* target, Source source, std::int64_t count, const Formula& formula,
                          bool non_temporal = false) {
  constexpr std::int64_t lanes = kLanes<V>;
  if (non_temporal && count > kLineBytes / std::int64_t{sizeof(T)})
    return stream_non_temporal<V>(target, source, count, formula);
  // The first and the last vector overlap their neighbours, so that whole vectors cover every
  // length and those between them are aligned in the target. Both are computed first and stored
  // last: in place, the elements that they share would otherwise be read again after they were
  // written.
  const std::int64_t last = count - lanes;
  const bool whole = last >= 0;
  const auto rest = static_cast<std::size_t>(count);
  const V tail = formula(whole ? load_last<V>(source + last) : load_partial<V>(source, rest),
                         whole ? last : 0);
  if (!whole) return store_partial(target, tail, rest);
  if (last == 0) return store(target, tail);
  std::int64_t i = 0;
  V head = tail;
  const bool short_run = count < kUnalignedVectors * lanes;
  if (!short_run) {
    head = formula(load<V>(source), 0);
    i = distance_to_alignment<V>(target);
  }
  constexpr std::int64_t group = kUnroll * lanes;
  const std::int64_t groups = (last - i + lanes - 1) / group;
  if (groups > 0) {
    for_each_group(i, groups, group, goes_down(target, source),
                   [&](std::int64_t at) DMLOPS_LAMBDA_INLINE {
                     V results[kUnroll];
                     for (int k = 0; k < kUnroll; ++k)
                       results[k] = formula(load<V>(source + at + k * lanes), at + k * lanes);
                     for (int k = 0; k < kUnroll; ++k) store(target + at + k * lanes, results[k]);
                   });
  }
  if constexpr (kUnroll > 1) {
    for (i += groups * group; i < last; i += lanes)
      store(target + i, formula(load<V>(source + i), i));
  }
  if (!short_run) store(target, head);
  store(target + last, tail);
}

// Runs of equal length, dense in the output and, where nothing else is said, in the input.
template <class T, class In = T>
struct Runs {
  char* output;
  const char* input;
  std::int64_t output_pitch = 0, input_pitch = 0;  // bytes
  const std::int64_t* output_offsets = nullptr;    // where not null, instead of the pitch
  std::int64_t length, count = 1;
  // All of these again, at so many bytes from them.
  std::int64_t layers = 1, output_layer_pitch = 0, input_layer_pitch = 0;
  bool non_temporal = false;  // write the output past the caches
  // Where not null: as many dense elements of type T, to be read into a cache in the meantime.
  const char* next = nullptr;

  // Calls visit(output, input) for each run. Processors do not foresee where the next layer is;
  // what is short enough comes in time without being asked for.
  template <class Visit>
  DMLOPS_INLINE void for_each(const Visit& visit) const {
    const std::int64_t bytes = length * static_cast<std::int64_t>(sizeof(In));
    const bool ask = layers > 1 && bytes >= 4 * kLineBytes;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      char* output_begin = output + layer * output_layer_pitch;
      const char* input_begin = input + layer * input_layer_pitch;
      const std::int64_t* offset = output_offsets;
      for (std::int64_t r = 0; r < count; ++r) {
        if (ask) prefetch_lines(input_begin + input_layer_pitch, bytes);
        visit(reinterpret_cast<T*>(offset != nullptr ? output + *offset++ : output_begin),
              reinterpret_cast<const In*>(input_begin));
        output_begin += output_pitch;
        input_begin += input_pitch;
      }
    }
  }
};

// Copies to memory past the caches, whole vectors of it.
inline void copy_non_temporal(std::uint8_t* target, const std::uint8_t* source,
                              std::int64_t bytes) {
  constexpr std::int64_t step = sizeof(u8x);
  const std::int64_t head = least(distance_to_alignment<u8x>(target) % step, bytes);
  const std::int64_t end = head + (bytes - head) / step * step;
  std::memcpy(target, source, static_cast<std::size_t>(head));
  for (std::int64_t i = head; i < end; i += step)
    store_non_temporal(target + i, load<u8x>(source + i));
  std::memcpy(target + end, source + end, static_cast<std::size_t>(bytes - end));
}

}  // namespace dmlops::DMLOPS_TARGET
