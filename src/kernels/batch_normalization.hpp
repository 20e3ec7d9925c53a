// Batch normalization: Act((x - Mean) * factor + Bias), factor = Scale / sqrt(Variance + Epsilon).
#pragma once

#include "kernels/activation_rows.hpp"
#include "kernels/normalization_columns.hpp"

namespace dmlops::DMLOPS_TARGET {

// One row with the same parameters throughout (those at `index`).
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_constant(Out* output, const T* input, std::int64_t length,
                                      const Channels<T>& channels, std::int64_t index,
                                      const Act& act, bool non_temporal) {
  const auto parameters = channels.throughout(index);
  stream<f32x, 2>(
      output, input, length,
      [&](f32x x, std::int64_t)
          DMLOPS_LAMBDA_INLINE { return canonical_nan(act(parameters.normalize(x))); },
      non_temporal);
}

// `count` rows from `first` on that follow one another, a vector long at least, with the first
// `count` parameters: in vectors aligned in the output, some of which go on into the next row. That
// suits images of few pixels, which have few other vectors, and writing past the caches, where a
// line that two rows share would be read again.
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_images(const Tile<T, Out>& rows, const Channels<T>& channels,
                                    std::int64_t first, std::int64_t count, const Act& act) {
  constexpr std::int64_t lanes = kLanes<f32x>;
  Out* const output = rows.output_row(first);
  const T* const input = rows.input_row(first);
  const std::int64_t length = rows.length, last = length * count - lanes;
  const auto normalized = [&](const auto& parameters, std::int64_t i) DMLOPS_LAMBDA_INLINE {
    return canonical_nan(act(parameters.normalize(load<f32x>(input + i))));
  };
  // As in stream(), the ends overlap their neighbours, and so are computed first and stored last.
  const f32x head = normalized(channels.throughout(0), 0);
  const f32x tail = normalized(channels.throughout(count - 1), last);
  const std::int64_t begin = distance_to_alignment<f32x>(output) % lanes;
  // write(first, end, result): output[i] = result(i), for whole vectors.
  const auto write_all = [&](const auto& write) DMLOPS_LAMBDA_INLINE {
    auto parameters = channels.throughout(0);
    std::int64_t i = begin, end = length;
    const auto result = [&](std::int64_t at)
                            DMLOPS_LAMBDA_INLINE { return normalized(parameters, at); };
    for (std::int64_t k = 0;; end += length) {
      const std::int64_t whole = i + (end - i) / lanes * lanes;
      write(i, whole, result);
      i = whole;
      if (++k == count) break;
      const auto next = channels.throughout(k);
      if (i < end) {
        parameters.take_from(next, end - i);
        write(i, i + lanes, result);
        i += lanes;
      }
      parameters = next;
    }
  };
  if (rows.non_temporal) {
    write_all([&](std::int64_t i, std::int64_t end, const auto& result)
                  DMLOPS_LAMBDA_INLINE { store_lines<f32x>(output, input, i, end, result); });
  } else {
    write_all([&](std::int64_t i, std::int64_t end, const auto& result) DMLOPS_LAMBDA_INLINE {
      for (; i < end; i += lanes) store(output + i, result(i));
    });
  }
  store(output, head);
  store(output + last, tail);
}

// One row, of a vector's length at least, with parameters of its own that lie dense and that no
// other row shares: straight from memory, and to it but where that makes the reading wait.
template <class T, class Out, class Act>
DMLOPS_INLINE void normalize_dense(Out* output, const T* input, std::int64_t length,
                                   const Rows& rows, std::int64_t row, std::int64_t column,
                                   float epsilon, const Act& act, bool non_temporal) {
  const auto operand = [&](int k) {
    return reinterpret_cast<const T*>(rows.data[k] + row * rows.pitch[k]) + column;
  };
  const T *const mean = operand(kMean), *const variance = operand(kVariance);
  const T *const scale = operand(kScale), *const bias = operand(kBias);
  const f32x epsilons = splat<f32x>(epsilon);
  // Would a loop wait for what it has written? It goes the way that suits the input; parameters can
  // lie on the output's other side.
  const bool down = goes_down(output, input);
  const auto waits = [=](const T* read) DMLOPS_LAMBDA_INLINE {
    return down ? is_just_beyond(read, output) : is_just_beyond(output, read);
  };
  const bool buffered = !non_temporal && length >= kUnalignedVectors * kLanes<f32x> &&
                        (waits(mean) || waits(variance) || waits(scale) || waits(bias));
  constexpr std::int64_t kPart = 1024;
  alignas(kVectorBytes) Out buffer[kPart];
  for (std::int64_t begin = 0, count = length; begin < length; begin += count) {
    count = length - begin;
    if (buffered && count > kPart)  // a vector at least is left for the next part
      count = count < kPart + kLanes<f32x> ? kPart - kLanes<f32x> : kPart;
    stream<f32x, 1>(
        buffered ? buffer : output + begin, input + begin, count,
        [&](f32x x, std::int64_t at) DMLOPS_LAMBDA_INLINE {
          const std::int64_t i = begin + at;
          const auto factor =
              normalization_factor<T>(load<f32x>(scale + i), load<f32x>(variance + i), epsilons);
          return canonical_nan(
              act(factor.times_plus(x - load<f32x>(mean + i), load<f32x>(bias + i))));
        },
        non_temporal);
    if (buffered)
      std::memcpy(output + begin, buffer, static_cast<std::size_t>(count) * sizeof(Out));
  }
}

template <class T, class Out, class Act>
void normalize_rows(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const BatchNormalizationParameters*>(parameters);
  const Act act(p.activation);
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
        const std::int64_t end = least(first + group, tile.count);
        prepare<T>(channels, across ? end - first : 1, rows, tile.row + first, tile.column, true,
                   p.epsilon);
        if (images) {
          normalize_images(tile, channels, first, end - first, act);
          continue;
        }
        for (std::int64_t r = first; r < end; ++r) {
          normalize_constant(tile.output_row(r), tile.input_row(r), tile.length, channels,
                             across ? r - first : 0, act, tile.non_temporal);
        }
      }
      return;
    }
    if (dense && (across || tile.count == 1) && tile.length >= kLanes<f32x>) {
      for (std::int64_t r = 0; r < tile.count; ++r) {
        normalize_dense(tile.output_row(r), tile.input_row(r), tile.length, rows, tile.row + r,
                        tile.column, p.epsilon, act, tile.non_temporal);
      }
      return;
    }
    if (!across && tile.count > 1 && tile.contiguous() &&
        tile.length <= Channels<T>::kCapacity / (tile.non_temporal ? 1 : 2)) {
      prepare<T>(channels, tile.length, rows, tile.row, tile.column, false, p.epsilon);
      normalize_pixels(tile, channels, act);
      return;
    }
    // Past the caches, parts end where lines do, and few rows go together: what a processor reads
    // ahead beyond a part is still in a cache when that is the next.
    constexpr std::int64_t line = kLineBytes / std::int64_t{sizeof(Out)};
    const std::int64_t shared = tile.non_temporal ? 32 : tile.count;
    Tile<T, Out> part = tile;
    for (std::int64_t r = 0; r < tile.count; r += part.count) {
      part.count = across ? 1 : least(shared, tile.count - r);
      std::int64_t end = tile.non_temporal ? distance_to_unit(tile.output_row(r), line) - line : 0;
      for (std::int64_t column = 0; column < tile.length; column = end) {
        end = least(end + Channels<T>::kCapacity, tile.length);
        part.length = end - column;
        part.output = reinterpret_cast<char*>(tile.output_row(r) + column);
        part.input = reinterpret_cast<const char*>(tile.input_row(r) + column);
        prepare<T>(channels, part.length, rows, tile.row + r, tile.column + column, false,
                   p.epsilon);
        normalize_columns(part, channels, 0, act);
      }
    }
  });
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
      normalize_rows<T, float, Identity>(part, parameters);

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
    normalize_rows<T, T, Act>(rows, parameters);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
