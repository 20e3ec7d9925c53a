// Batch normalization whose parameters change along a row: rows that share them, one below another.
#pragma once

#include "kernels/normalization_channels.hpp"
#include "kernels/stream.hpp"

namespace dmlops::DMLOPS_TARGET {

// One row with parameters of its own for each element, those from `first` on.
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_varying(Out* output, const T* input, std::int64_t length,
                                     const Channels<T>& channels, std::int64_t first,
                                     const Act& act, bool non_temporal = false) {
  stream<f32x, 1>(
      output, input, length,
      [&](f32x x, std::int64_t i)
          DMLOPS_LAMBDA_INLINE { return canonical_nan(act(channels[first + i].normalize(x))); },
      non_temporal);
}

// The same for what is left at the ends of whole vectors. Not inlined, as that is in many places.
template <class T, class Out, class Act>
DMLOPS_NO_INLINE void normalize_end(Out* output, const T* input, std::int64_t length,
                                    const Channels<T>& channels, std::int64_t first,
                                    const Act& act) {
  if (length > 0) normalize_varying(output, input, length, channels, first, Act(act));
}

// Parameters can take more time to read than the input. What float16's conversions take hides that,
// as does main memory.
template <class T, class Out>
bool reads_parameters_once(const Tile<T, Out>& tile) {
  return std::is_same_v<T, float> && !tile.non_temporal;
}

// Rows that share parameters, those of each column from `first` on.
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_columns(const Tile<T, Out>& rows, const Channels<T>& channels,
                                     std::int64_t first, const Act& act) {
  constexpr std::int64_t kTogether = 4, lanes = kLanes<f32x>;
  const bool together = reads_parameters_once(rows);
  std::int64_t r = 0;
  for (; together && r + kTogether <= rows.count; r += kTogether) {
    const std::int64_t unaligned = distance_to_alignment<f32x>(rows.output_row(r)) % lanes;
    const std::int64_t begin = least(unaligned, rows.length);
    const std::int64_t end = begin + (rows.length - begin) / lanes * lanes;
    for (std::int64_t i = begin; i < end; i += lanes) {
      const auto parameters = channels[first + i];
      // All are read before any is written: where the rows are a multiple of 4 KiB apart,
      // processors take the one for the other.
      f32x results[kTogether];
      for (std::int64_t k = 0; k < kTogether; ++k)
        results[k] = parameters.normalize(load<f32x>(rows.input_row(r + k) + i));
      for (std::int64_t k = 0; k < kTogether; ++k)
        store(rows.output_row(r + k) + i, canonical_nan(act(results[k])));
    }
    if (begin == 0 && end == rows.length) continue;
    for (std::int64_t k = r; k < r + kTogether; ++k) {
      normalize_end(rows.output_row(k), rows.input_row(k), begin, channels, first, act);
      normalize_end(rows.output_row(k) + end, rows.input_row(k) + end, rows.length - end, channels,
                    first + end, act);
    }
  }
  for (; r < rows.count; ++r)
    normalize_varying(rows.output_row(r), rows.input_row(r), rows.length, channels, first, act,
                      rows.non_temporal);
}

// Elements whose parameters recur after `period`, past the caches: in whole lines, in which one row
// can end and the next begin. What is left at both ends is written as usual.
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_periodic(Out* output, const T* input, std::int64_t total,
                                      const Channels<T>& channels, std::int64_t period,
                                      const Act& act) {
  constexpr std::int64_t lanes = kLanes<f32x>, line = kLineBytes / sizeof(Out);
  const std::int64_t head = least(distance_to_unit(output, line), total);
  const std::int64_t end = total - (total - head) % line;
  normalize_end(output, input, head, channels, 0, act);
  for (std::int64_t i = head, column = head % period; i < end;) {
    const std::int64_t vectors = (period - column + lanes - 1) / lanes;
    const std::int64_t past = least(i + vectors * lanes, end);
    store_lines<f32x>(output, input, i, past, [&](std::int64_t j) DMLOPS_LAMBDA_INLINE {
      const auto parameters = channels[column + j - i];
      return canonical_nan(act(parameters.normalize(load<f32x>(input + j))));
    });
    column += past - i - period;
    i = past;
  }
  normalize_end(output + end, input + end, total - end, channels, end % period, act);
}

// Short rows that follow one another, as pixels of a few channels, and share parameters: as rows of
// several of them, whole vectors long where that can be and aligned in the output.
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_pixels(const Tile<T, Out>& pixels, Channels<T>& channels,
                                    const Act& act) {
  constexpr std::int64_t lanes = kLanes<f32x>;
  const std::int64_t least_length = reads_parameters_once(pixels) ? 128 : 512;
  const std::int64_t total = pixels.length * pixels.count;
  std::int64_t length = pixels.length;
  while ((length % lanes != 0 || length < least_length) &&
         length + pixels.length + lanes <= Channels<T>::kCapacity) {
    length += pixels.length;
  }
  length = least(length, total);
  repeat(channels, pixels.length, least(length + Channels<T>::kOverlap, total));
  Out* const output = pixels.output_row(0);
  const T* const input = pixels.input_row(0);
  if (pixels.non_temporal) return normalize_periodic(output, input, total, channels, length, act);
  const std::int64_t head = least(distance_to_alignment<f32x>(output), total);
  normalize_end(output, input, head, channels, 0, act);
  Tile<T, Out> rows = pixels;
  rows.length = length;
  rows.count = (total - head) / length;
  rows.output = reinterpret_cast<char*>(output + head);
  rows.input = reinterpret_cast<const char*>(input + head);
  rows.output_pitch = length * std::int64_t{sizeof(Out)};
  rows.input_pitch = length * std::int64_t{sizeof(T)};
  normalize_columns(rows, channels, head, act);
  const std::int64_t done = head + rows.count * length;
  normalize_end(output + done, input + done, total - done, channels, head, act);
}

}  // namespace dmlops::DMLOPS_TARGET
