// Packing and unpacking, compiled once for all kernels.
#include "kernels/blocks/pack.hpp"

#include "kernels/blocks/interleave.hpp"
#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/pack_columns.hpp"
#include "kernels/blocks/pack_patterns.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

// Fills contiguous runs of at least a vector, each with one of the values. Only the last two stores
// overlap.
template <class U>
void fill_runs_of_vectors(char* target, std::int64_t bytes, std::int64_t count, const U* values) {
  using V = Vec<U>;
  constexpr std::int64_t step = sizeof(V);
  alignas(kVectorBytes) char mask[2 * step] = {};
  store_element(mask, splat<V>(static_cast<U>(~U{0})));
  char* const last = target + count * bytes - step;
  V run = splat<V>(values[0]);
  std::int64_t left = bytes;  // of the run, which are not stored yet
  for (std::int64_t i = 1; i < count; ++i) {
    for (; left >= step; left -= step, target += step) store_element(target, run);
    const V next = splat<V>(values[i]), of_run = load_element<V>(mask + step - left);
    store_element(target, (run & of_run) | (next & ~of_run));
    target += step;
    left += bytes - step;
    run = next;
  }
  for (; target < last; target += step) store_element(target, run);
  store_element(last, run);
}

// Fills contiguous runs, run i with the element at source(i).
template <class U, class ElementAddress>
DMLOPS_INLINE void fill_runs_from(char* target, std::int64_t bytes, std::int64_t count,
                                  const ElementAddress& source) {
  constexpr std::int64_t kRuns = 128;
  U values[kRuns];
  for (std::int64_t i = 0; i < count; i += kRuns) {
    const std::int64_t runs = min(kRuns, count - i);
    for (std::int64_t k = 0; k < runs; ++k) values[k] = load_element<U>(source(i + k));
    fill_runs<U>(target + i * bytes, bytes, runs, values);
  }
}

// Packs elements with a common step into a dense row.
template <class U>
DMLOPS_INLINE void pack_run(char* target, std::int64_t length, const char* source,
                            std::int64_t step) {
  constexpr std::int64_t size = sizeof(U);
  if (step == size) {
    copy_run(target, source, length * size);
  } else if (step == 0) {
    fill_row<U>(target, length * size, load_element<U>(source));
  } else {
    pack_strided<U>(target, length, source, step);
  }
}

// Packs runs at a common step, which may be 0, into a dense row.
void pack_stepped_runs(char* target, const char* source, std::int64_t step, std::int64_t count,
                       std::int64_t bytes) {
  if (!is_word(bytes))
    return copy_runs<false>(target, source, SteppedOffsets{step}, count, bytes, bytes);
  with_element_size(bytes, [=](auto u) { pack_column<decltype(u)>(target, count, source, step); });
}

// Packs contiguous runs at offsets into a dense row.
DMLOPS_NO_INLINE void pack_runs_at(char* target, const char* source, const std::int64_t* offsets,
                                   std::int64_t count, std::int64_t bytes) {
  if (!is_word(bytes)) return copy_runs<false>(target, source, offsets, count, bytes, bytes);
  with_element_size(bytes, [=](auto u) DMLOPS_LAMBDA_INLINE {
    pack_words<decltype(u)>(target, count, source, offsets);
  });
}

// Packs runs of several elements into a dense row.
template <class U>
DMLOPS_INLINE void pack_runs(char* target, std::int64_t length, const char* source,
                             const Source& from) {
  constexpr std::int64_t size = sizeof(U);
  const std::int64_t bytes = from.run * size, count = length / from.run;
  const std::int64_t* const offsets = from.offsets;
  const std::int64_t run_step = from.period == from.run ? from.period_step : 0;
  std::int64_t i = 0;
  if (from.skip == 0 && from.step == size) {
    if (run_step != 0) {
      pack_stepped_runs(target, source + offsets[0], run_step, count, bytes);
    } else {
      pack_runs_at(target, source, offsets, count, bytes);
    }
    i = count;
  } else if (from.skip == 0 && run_step > 0 && run_step < abs(from.step)) {
    pack<U>(target, bytes, from.run, count, {source + offsets[0], run_step, from.step});
    i = count;
  } else if (from.skip == 0 && from.step == 0) {
    fill_runs_from<U>(target, bytes, count, [source, offsets](std::int64_t k) DMLOPS_LAMBDA_INLINE {
      return source + offsets[k];
    });
    i = count;
  }
  for (std::int64_t packed = i * from.run, skip = from.skip; packed < length; ++i, skip = 0) {
    const std::int64_t left = min(from.run - skip, length - packed);
    pack_run<U>(target + packed * size, left, source + offsets[i] + skip * from.step, from.step);
    packed += left;
  }
}

// Packs gathered rows by runs or elements. Runs of rows that alternate in memory are packed in the
// order of memory.
template <class U>
DMLOPS_NO_INLINE void pack_by_runs(char* target, std::int64_t target_pitch, std::int64_t length,
                                   std::int64_t count, const Source& from) {
  constexpr std::int64_t size = sizeof(U);
  const std::int64_t bytes = from.run * size, runs = length / from.run;
  const bool whole_runs = from.skip == 0 && runs * from.run == length;
  const bool alternate = from.step == size && whole_runs && from.rows == nullptr && runs > 1 &&
                         abs(from.pitch) < abs(from.offsets[1] - from.offsets[0]);
  if (alternate && from.run > 1 && count > 1 && count * bytes >= kShortestAlternate) {
    for (std::int64_t i = 0; i < runs; ++i)
      copy_runs<false>(target + i * bytes, from.data + from.offsets[i], SteppedOffsets{from.pitch},
                       count, bytes, target_pitch);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    char* const row = target + r * target_pitch;
    if (from.run > 1) {
      pack_runs<U>(row, length, from.row(r), from);
    } else {
      pack_words<U>(row, length, from.row(r), from.offsets);
    }
  }
}

// Packs rows whose elements have no common step.
template <class U>
DMLOPS_NO_INLINE void pack_gathered(char* target, std::int64_t target_pitch, std::int64_t length,
                                    std::int64_t count, const Source& from, bool spills) {
  constexpr std::int64_t size = sizeof(U);
  // Wider blocks compensate for smaller elements.
  constexpr int quads = size <= 2 && kVectorBytes > 16 ? 2 : 1;
  if (from.run == 1 && from.pitch == size &&
      pack_columns<U, quads>(target, target_pitch, length, count,
                             GatheredColumns{from.data, from.offsets}, spills))
    return;
  std::int64_t packed = 0;
  if (from.of_periods != nullptr && length * size >= kShortestOfPeriods &&
      length >= from.phase + 2 * from.period) {
    // Before and after the whole periods, elements overwrite what these spill.
    const std::int64_t begin = from.phase == 0 ? 0 : from.period - from.phase;
    packed = begin + pack_periods<U>(target + begin * size, target_pitch, length - begin, count,
                                     from.from_element(begin), spills);
    if (begin > 0) pack_by_runs<U>(target, target_pitch, begin, count, from);
  }
  if (packed < length)
    pack_by_runs<U>(target + packed * size, target_pitch, length - packed, count,
                    from.from_element(packed));
}

}  // namespace

template <class U>
void fill_runs(char* target, std::int64_t bytes, std::int64_t count, const U* values,
               PatternShuffles* shuffles) {
  if (bytes >= kVectorBytes && bytes < kLongestMerged)
    return fill_runs_of_vectors<U>(target, bytes, count, values);
  constexpr std::int64_t kLongestShuffled = 23, size = sizeof(U);
  std::int64_t i = 0;
  if (bytes <= kLongestShuffled) {
    Source from{reinterpret_cast<const char*>(values), size, 0};
    from.of_rows = shuffles;
    i = pack_pattern_rows<U>(target, bytes / size, count, from, false);
  }
  // Each short run overwrites the excess of the previous run's vector, which is no longer than
  // necessary. The last runs leave no space for whole vectors.
  const auto by_vectors = [&](auto stored) DMLOPS_LAMBDA_INLINE {
    constexpr int kMax = decltype(stored)::value,
                  kStored = kMax < kVectorBytes ? kMax : kVectorBytes;
    const std::int64_t end = count - kStored / bytes;
    for (; i < end; ++i) store_front<kStored>(target + i * bytes, splat<Vec<U>>(values[i]));
  };
  if (bytes <= 16) {
    by_vectors(std::integral_constant<int, 16>());
  } else if (bytes <= 32 && kVectorBytes >= 32) {
    by_vectors(std::integral_constant<int, 32>());
  } else if (bytes < kVectorBytes) {
    by_vectors(std::integral_constant<int, 64>());
  }
  for (; i < count; ++i) fill_row<U>(target + i * bytes, bytes, values[i]);
}

template <class U>
void pack(char* target, std::int64_t target_pitch, std::int64_t length, std::int64_t count,
          const Source& from, bool spills) {
  constexpr std::int64_t size = sizeof(U);
  const std::int64_t step = from.step;
  const char* const source = from.data;
  const bool dense = target_pitch == length * size;
  const bool has_contiguous_columns =
      from.pitch == size && from.rows == nullptr && step != size && step != 0 && from.run == 1;
  if (has_contiguous_columns) {
    if (dense && from.offsets == nullptr && interleave<U>(target, length, count, source, step))
      return;
  } else if (dense) {
    const std::int64_t rows = pack_pattern_rows<U>(target, length, count, from, spills);
    if (rows == count) return;
    if (rows > 0)
      return pack<U>(target + rows * target_pitch, target_pitch, length, count - rows,
                     from.from_row(rows), spills);
  }
  if (from.offsets != nullptr)
    return pack_gathered<U>(target, target_pitch, length, count, from, spills);
  if (has_contiguous_columns && !is_packed_by_vectors<U>(step, length)) {
    const SteppedColumns columns{source, step};
    const bool packed =
        keeps_lines<U>(step)
            ? pack_columns<U, kWideQuads>(target, target_pitch, length, count, columns, spills)
            : pack_columns<U>(target, target_pitch, length, count, columns, spills);
    if (packed || pack_narrow<U>(target, target_pitch, length, count, source, step)) return;
  }
  if (is_strided_columns<U>(from, length, count))
    return pack_strided_columns<U>(target, target_pitch, length, count, from);
  if (step == size && dense && target_pitch <= 2 * kVectorBytes) {
    if (from.rows != nullptr) return pack_runs_at(target, source, from.rows, count, target_pitch);
    return pack_stepped_runs(target, source, from.pitch, count, target_pitch);
  }
  if (step == 0 && dense)
    return fill_runs_from<U>(target, target_pitch, count,
                             [&from](std::int64_t i) DMLOPS_LAMBDA_INLINE { return from.row(i); });
  for (std::int64_t r = 0; r < count; ++r)
    pack_run<U>(target + r * target_pitch, length, from.row(r), step);
}

template <class U>
void unpack(char* target, std::int64_t step, const std::int64_t* offsets, const char* source,
            std::int64_t length, std::int64_t run) {
  constexpr std::int64_t size = sizeof(U);
  if (run > 1)
    return copy_runs<true>(target, source, offsets, length / run, run * size, run * size);
  if (offsets != nullptr) return unpack_words<U>(target, offsets, source, length);
  unpack_words<U>(target, SteppedOffsets{step}, source, length);
}

#define DMLOPS_INSTANTIATE(U)                                                                  \
  template void fill_runs<U>(char*, std::int64_t, std::int64_t, const U*, PatternShuffles*);   \
  template void pack<U>(char*, std::int64_t, std::int64_t, std::int64_t, const Source&, bool); \
  template void unpack<U>(char*, std::int64_t, const std::int64_t*, const char*, std::int64_t, \
                          std::int64_t);
DMLOPS_INSTANTIATE(std::uint8_t)
DMLOPS_INSTANTIATE(std::uint16_t)
DMLOPS_INSTANTIATE(std::uint32_t)
DMLOPS_INSTANTIATE(std::uint64_t)
#undef DMLOPS_INSTANTIATE

}  // namespace dmlops::DMLOPS_TARGET
