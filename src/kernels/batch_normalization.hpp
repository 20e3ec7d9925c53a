// Batch normalization: Act((x - Mean) * factor + Bias), factor = Scale / sqrt(Variance + Epsilon).
#pragma once

#include "kernels/activation_rows.hpp"
#include "kernels/normalization_loops.hpp"

namespace dmlops::DMLOPS_TARGET {

// Short rows that follow one another, as pixels of a few channels, and share parameters: as rows of
// several of them, whole vectors long where that can be and aligned in the output.
template <class T, class Out>
void normalize_pixels(const Tile<T, Out>& pixels, Channels<T>& channels,
                      const NormalizationLoops<T, Out>& loops, const void* act) {
  constexpr std::int64_t lanes = kLanes<f32x>, line = kLineBytes / sizeof(Out);
  const std::int64_t least_length = reads_parameters_once(pixels) ? 128 : 512;
  const std::int64_t total = pixels.length * pixels.count;
  std::int64_t period = pixels.length;
  while ((period % lanes != 0 || period < least_length) &&
         period + pixels.length + lanes <= Channels<T>::kCapacity) {
    period += pixels.length;
  }
  period = least(period, total);
  const std::int64_t repeated = least(period + Channels<T>::kOverlap, total);
  repeat(channels, pixels.length, repeated);
  // `count` rows from the element at `begin` on.
  const auto rows = [&](std::int64_t begin, std::int64_t length, std::int64_t count) {
    Tile<T, Out> part = pixels;
    part.length = length;
    part.count = count;
    part.output = reinterpret_cast<char*>(pixels.output_row(0) + begin);
    part.input = reinterpret_cast<const char*>(pixels.input_row(0) + begin);
    part.output_pitch = length * std::int64_t{sizeof(Out)};
    part.input_pitch = length * std::int64_t{sizeof(T)};
    return part;
  };
  // Past the caches go whole lines, in which one row can end and the next begin.
  const std::int64_t unit = pixels.non_temporal ? line : period;
  const std::int64_t aligned = pixels.non_temporal ? line : lanes;
  const std::int64_t head = least(distance_to_unit(pixels.output_row(0), aligned), total);
  const std::int64_t tail = (total - head) % unit, middle = total - head - tail;
  // What is left at both ends is written as usual.
  const auto normalize_end = [&](std::int64_t begin, std::int64_t length, std::int64_t first) {
    if (length == 0) return;
    Tile<T, Out> end = rows(begin, length, 1);
    end.non_temporal = false;
    loops.columns(end, channels, first, act);
  };
  normalize_end(0, head, 0);
  move_to_front(channels, head, repeated);  // aligned as the rows are
  if (pixels.non_temporal) {
    loops.periodic(rows(head, middle, 1), channels, 0, period, act);
  } else {
    loops.columns(rows(head, period, middle / period), channels, 0, act);
  }
  normalize_end(total - tail, tail, middle % period);
}

// Rows with extreme parameters: packs all parameters into dense rows for loops.dense, which takes
// any.
template <class T, class Out>
DMLOPS_NO_INLINE void normalize_extreme(const Tile<T, Out>& tile, const Rows& rows, float epsilon,
                                        const NormalizationLoops<T, Out>& loops, const void* act) {
  constexpr std::int64_t kPart = 512;
  alignas(kVectorBytes) T packed[kBatchNormalizationEnd][kPart] = {};
  Rows operands = {};
  for (int k = kMean; k < kBatchNormalizationEnd; ++k)
    operands.data[k] = reinterpret_cast<char*>(packed[k]);
  for (std::int64_t r = 0; r < tile.count; ++r) {
    for (std::int64_t column = 0; column < tile.length; column += kPart) {
      Tile<T, Out> part = tile.part(r, 1);
      part.length = least(kPart, tile.length - column);
      part.output += column * std::int64_t{sizeof(Out)};
      part.input += column * std::int64_t{sizeof(T)};
      for (int k = kMean; k < kBatchNormalizationEnd; ++k)
        pack_row<Bits<T>>(
            packed[k], part.length,
            rows.data[k] + (tile.row + r) * rows.pitch[k] + (tile.column + column) * rows.step[k],
            rows.step[k]);
      part.row = part.column = 0;  // of the packed operands
      part.non_temporal = false;
      loops.dense(part, operands, epsilon, act);
    }
  }
}

// All ways to the loops: compiled once for all activations.
template <class T, class Out>
DMLOPS_NO_INLINE void normalize_rows(const Rows& rows, float epsilon,
                                     const NormalizationLoops<T, Out>& loops, const void* act) {
  bool along = false, across = false;  // do parameters change along a row, or from row to row?
  bool dense = true;                   // do all change from each element of a row to the next?
  for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
    along = along || (rows.length > 1 && rows.step[k] != 0);
    across = across || (rows.count > 1 && rows.pitch[k] != 0);
    dense = dense && rows.step[k] == sizeof(T);
  }
  Channels<T> channels;

  for_each_tile<T, Out>(rows, [&](const Tile<T, Out>& tile) DMLOPS_LAMBDA_INLINE {
    if (!along) {
      const bool images = across && tile.contiguous() && tile.length >= kLanes<f32x> &&
                          (tile.non_temporal || tile.length < kUnalignedVectors * kLanes<f32x>);
      const std::int64_t group = across ? Channels<T>::kCapacity : tile.count;
      for (std::int64_t first = 0; first < tile.count; first += group) {
        const Tile<T, Out> part = tile.part(first, least(group, tile.count - first));
        if (!prepare<T>(channels, across ? part.count : 1, rows, part.row, part.column, true,
                        epsilon)) {
          normalize_extreme(part, rows, epsilon, loops, act);
        } else if (images) {
          loops.images(part, channels, act);
        } else {
          loops.constant(part, channels, across, act);
        }
      }
      return;
    }
    if (dense && (across || tile.count == 1) && tile.length >= kLanes<f32x>)
      return loops.dense(tile, rows, epsilon, act);
    if (!across && tile.count > 1 && tile.contiguous() &&
        tile.length <= Channels<T>::kCapacity / (tile.non_temporal ? 1 : 2)) {
      return prepare<T>(channels, tile.length, rows, tile.row, tile.column, false, epsilon)
                 ? normalize_pixels(tile, channels, loops, act)
                 : normalize_extreme(tile, rows, epsilon, loops, act);
    }
    // Past the caches, parts end where lines do, and few rows go together: what a processor reads
    // ahead beyond a part is still in a cache when that is the next.
    constexpr std::int64_t line = kLineBytes / std::int64_t{sizeof(Out)};
    const std::int64_t shared = across ? 1 : tile.non_temporal ? 32 : tile.count;
    for (std::int64_t r = 0; r < tile.count; r += shared) {
      const Tile<T, Out> group = tile.part(r, least(shared, tile.count - r));
      Tile<T, Out> part = group;
      std::int64_t end = tile.non_temporal ? distance_to_unit(tile.output_row(r), line) - line : 0;
      for (std::int64_t column = 0; column < tile.length; column = end) {
        end = least(end + Channels<T>::kCapacity, tile.length);
        part.length = end - column;
        part.output = group.output + column * std::int64_t{sizeof(Out)};
        part.input = group.input + column * std::int64_t{sizeof(T)};
        part.column = tile.column + column;
        if (prepare<T>(channels, part.length, rows, part.row, part.column, false, epsilon)) {
          loops.columns(part, channels, 0, act);
        } else {
          normalize_extreme(part, rows, epsilon, loops, act);
        }
      }
    }
  });
}

template <class T, class Out, class Act>
void normalize_by(const Rows& rows, const void* parameters) {
  using Own = ActivatedLoops<T, Out, Act>;
  static constexpr NormalizationLoops<T, Out> loops = {&Own::constant, &Own::images, &Own::dense,
                                                       &Own::columns, &Own::periodic};
  const auto& p = *static_cast<const BatchNormalizationParameters*>(parameters);
  const Act act(p.activation);
  normalize_rows<T, Out>(rows, p.epsilon, loops, &act);
}

// Batch normalization part by part, each of which goes through `activate` while the first cache has
// it: so that long formulas are compiled once and not for each way through the rows.
template <class T>
DMLOPS_NO_INLINE void normalize_then(const Rows& rows, const void* parameters,
                                     RunsFunction<T, float> activate, const void* activation) {
  constexpr std::int64_t size = sizeof(float), capacity = kTileBytes / size;
  alignas(kVectorBytes) float buffer[capacity];
  bool along = false;  // do parameters change along a row?
  for (int k = kMean; k < kBatchNormalizationEnd; ++k) along = along || rows.step[k] != 0;
  // Parts of several rows share the parameters of their columns and, where the input runs across
  // the rows, its cache lines.
  const bool across = magnitude(rows.pitch[1]) < magnitude(rows.step[1]);
  const std::int64_t together = across ? 64 : along ? 16 : 1;
  const std::int64_t length = least(rows.length, capacity / least(rows.count, together));
  const std::int64_t count = least(rows.count, capacity / length);
  const bool dense = rows.step[0] == sizeof(T) || rows.length == 1;
  for (std::int64_t row = 0; row < rows.count; row += count) {
    for (std::int64_t column = 0; column < rows.length; column += length) {
      Rows part = rows;
      part.length = least(length, rows.length - column);
      part.count = least(count, rows.count - row);
      for (int k = 0; k < kBatchNormalizationEnd; ++k)
        part.data[k] += row * rows.pitch[k] + column * rows.step[k];
      char* const output = part.data[0];
      part.data[0] = reinterpret_cast<char*>(buffer);
      part.step[0] = size;
      part.pitch[0] = part.length * size;
      part.non_temporal = false;
      normalize_by<T, float, Identity>(part, parameters);

      alignas(kVectorBytes) T activated[capacity];
      const std::int64_t run = part.length * std::int64_t{sizeof(T)};
      Runs<T, float> runs;
      runs.output = dense ? output : reinterpret_cast<char*>(activated);
      runs.input = part.data[0];
      runs.output_pitch = dense ? rows.pitch[0] : run;
      runs.input_pitch = part.pitch[0];
      runs.length = part.length;
      runs.count = part.count;
      runs.non_temporal = rows.non_temporal && dense;
      // The part that most likely comes next.
      const bool below = part.length == rows.length;
      runs.next = part.data[1] + (below ? part.count * rows.pitch[1] : part.length * rows.step[1]);
      if (runs.output_pitch == run) {
        runs.length *= runs.count;
        runs.count = 1;
      }
      activate(runs, activation);
      if (!dense) {
        unpack<Bits<T>>(output, rows.step[0], rows.pitch[0],
                        reinterpret_cast<const char*>(activated), part.length, part.count);
      }
    }
  }
  if (rows.non_temporal) finish_non_temporal();
}

template <class T, class Act>
void batch_normalization(const Rows& rows, const void* parameters) {
  if constexpr (kIsLong<Act>) {
    const Act act(static_cast<const BatchNormalizationParameters*>(parameters)->activation);
    normalize_then<T>(rows, parameters, &activate_runs<T, float, Act>, &act);
  } else {
    normalize_by<T, T, Act>(rows, parameters);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
