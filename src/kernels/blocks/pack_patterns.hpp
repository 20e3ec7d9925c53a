// Decides which rows are packed by shuffles: those that are, or repeat, a short pattern, such as
// pixels of a few channels that are reversed, permuted or have gaps, small tiles that are
// transposed, and short broadcast runs.
#pragma once

#include "kernels/blocks/pack.hpp"
#include "kernels/blocks/shuffles.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr std::int64_t kLongestPattern = 512;     // elements
constexpr std::int64_t kShortestOfPeriods = 256;  // bytes of a row whose periods are patterns
// Of a traversal, from which preparation of shuffles pays off.
constexpr std::int64_t kFewestPatterns = 16, kFewestElements = 512;

// True if pack_strided() packs vectors rather than elements.
template <class U>
bool is_packed_by_vectors(std::int64_t step, std::int64_t length) {
  constexpr std::int64_t size = sizeof(U);
  return length >= 2 * kLanes<Vec<U>> &&
         (step == 2 * size || (kShufflesBytes && size < 8 && step == 3 * size) || step == 4 * size);
}

constexpr bool is_word(std::int64_t bytes) { return bytes <= 8 && (bytes & (bytes - 1)) == 0; }

#if defined(DMLOPS_HAS_BYTE_SHUFFLE)
// Estimates the operations of packing a row without shuffles; 0 if shuffles cannot be faster.
template <class U>
float operations_of_row(const Source& from, std::int64_t length) {
  constexpr float of_word = 2.2F, of_run = 3.5F, of_fill = 4, of_reversed = 3, of_call = 6;
  constexpr std::int64_t size = sizeof(U), lanes = kLanes<Vec<U>>;
  const bool has_runs = from.offsets != nullptr;
  const std::int64_t run = has_runs ? from.run : length, bytes = run * size;
  const float runs = static_cast<float>(length) / static_cast<float>(run);
  if (from.step == 0) return runs * of_fill;
  if (from.step == size) {
    if (!is_word(bytes)) return bytes <= kVectorBytes ? runs * of_run : 0;
    const bool by_vectors = has_runs && from.period == run &&
                            (from.period_step == 2 * bytes || from.period_step == 4 * bytes);
    return by_vectors ? 0 : runs * of_word;
  }
  const bool are_columns = has_runs && from.period == run && from.period_step == size;
  if (are_columns || (!has_runs && is_packed_by_vectors<U>(from.step, length))) return 0;
  if (kReversesVectors<U> && from.step == -size && run >= lanes) {
    const float vectors = of_call + of_reversed * static_cast<float>(run / lanes);
    return runs * (vectors + of_word * static_cast<float>(run % lanes));
  }
  return static_cast<float>(length) * of_word;
}

// Returns the offset of a row's first element.
inline std::int64_t first_offset(const Source& from) {
  return from.offsets != nullptr ? from.offsets[0] + from.skip * from.step : 0;
}

// Lists the offsets of a row's first elements, relative to the first one.
inline void list_offsets(const Source& from, std::int64_t count, std::int64_t* offsets) {
  const std::int64_t begin = first_offset(from);
  for (std::int64_t k = 0, i = from.skip, run = 0; k < count; ++k, ++i) {
    if (from.offsets != nullptr && i == from.run) {
      ++run;
      i = 0;
    }
    offsets[k] = (from.offsets != nullptr ? from.offsets[run] : 0) + i * from.step - begin;
  }
}

// Packs `repeats` patterns, which consist of the first `count` elements of a row, every `step`
// bytes, or at `offsets` unless null. Returns the number of packed ones.
template <class U>
DMLOPS_NO_INLINE std::int64_t pack_patterns(PatternShuffles& shuffles, char* target,
                                            const Source& from, std::int64_t length,
                                            std::int64_t count, std::int64_t repeats,
                                            std::int64_t step, const std::int64_t* offsets,
                                            bool spills) {
  if (!shuffles.is_prepared()) {
    const float share = static_cast<float>(count) / static_cast<float>(length);
    const float operations = operations_of_row<U>(from, length) * share;
    if (operations == 0) {
      shuffles.reject();
      return 0;
    }
    std::int64_t of_elements[kLongestPattern];
    list_offsets(from, count, of_elements);
    shuffles.prepare<U>({of_elements, count, offsets != nullptr ? 0 : step}, repeats, operations);
  }
  return shuffles.pack<U>(target, from.data + first_offset(from), offsets, repeats, spills);
}

// Packs dense rows as patterns. Returns the number of packed ones.
template <class U>
DMLOPS_INLINE std::int64_t pack_pattern_rows(char* target, std::int64_t length, std::int64_t count,
                                             const Source& from, bool spills) {
  if (from.of_rows == nullptr) return 0;
  return pack_patterns<U>(*from.of_rows, target, from, length, length, count, from.pitch, from.rows,
                          spills);
}

// Packs the whole periods of rows as patterns. Returns the number of elements that are packed of
// each row.
template <class U>
DMLOPS_INLINE std::int64_t pack_periods(char* target, std::int64_t target_pitch,
                                        std::int64_t length, std::int64_t count, const Source& from,
                                        bool spills) {
  std::int64_t packed = 0;
  Source row = from;
  for (std::int64_t r = 0; r < count; ++r) {
    row.data = from.row(r);
    packed = pack_patterns<U>(*from.of_periods, target + r * target_pitch, row, length, from.period,
                              length / from.period, from.period_step, nullptr, spills);
  }
  return packed * from.period;
}
#else
template <class U>
DMLOPS_INLINE std::int64_t pack_pattern_rows(char*, std::int64_t, std::int64_t, const Source&,
                                             bool) {
  return 0;
}
template <class U>
DMLOPS_INLINE std::int64_t pack_periods(char*, std::int64_t, std::int64_t, std::int64_t,
                                        const Source&, bool) {
  return 0;
}
#endif

}  // namespace dmlops::DMLOPS_TARGET
