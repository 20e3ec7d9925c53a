// Gives a kernel dense rows to work on: in place where memory is dense, through a small buffer
// where it is not.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/move.hpp"
#include "kernels/stream.hpp"
#include "kernels/transpose.hpp"

namespace dmlops::DMLOPS_TARGET {

// A part of Rows with dense rows of input and output, whose elements are of type Out.
template <class T, class Out = T>
struct Tile {
  std::int64_t row, column;    // where it begins
  std::int64_t count, length;  // rows, elements in a row
  char* output;
  const char* input;
  std::int64_t output_pitch, input_pitch;  // bytes
  const std::int64_t* row_offsets;         // of Rows, from the tile's first row on
  bool non_temporal;                       // write the output past the caches

  Out* output_row(std::int64_t r) const {
    return reinterpret_cast<Out*>(row_at(output, r, output_pitch, row_offsets));
  }
  const T* input_row(std::int64_t r) const {
    return reinterpret_cast<const T*>(input + r * input_pitch);
  }
  // True where each row begins where the one before it ends, so that all are one run.
  bool contiguous() const {
    const auto dense = [this](std::int64_t pitch, std::size_t size) {
      return pitch == length * static_cast<std::int64_t>(size);
    };
    return count == 1 || (dense(output_pitch, sizeof(Out)) && dense(input_pitch, sizeof(T)) &&
                          row_offsets == nullptr);
  }
};

constexpr std::int64_t kTileBytes = 16 * 1024;  // half of the usual first-level data cache

// Calls visit(tile) until all rows are covered. Operand 0 is the output, operand 1 the input. Rows
// of an output of another type must be dense.
template <class T, class Out = T, class Visit>
DMLOPS_INLINE void for_each_tile(const Rows& rows, const Visit& visit) {
  constexpr std::int64_t size = sizeof(T), capacity = kTileBytes / size, kLine = kLineBytes / size;
  alignas(kVectorBytes) char buffer[kTileBytes];
  const bool gathered = rows.offsets != nullptr;
  const bool pack_input = gathered || (rows.step[1] != size && rows.length > 1);
  const bool unpack_output = std::is_same_v<T, Out> && rows.step[0] != size && rows.length > 1;
  // Elements that are packed first are written past the caches from there.
  const bool copy_output =
      std::is_same_v<T, Out> && rows.non_temporal && pack_input && !unpack_output;
  const bool buffer_output = unpack_output || copy_output;
  bool across = false;
  std::int64_t tile_length = rows.length, tile_count = rows.count;
  if (pack_input || buffer_output) {
    // Where the input runs across the rows, a tile takes enough rows to use whole cache lines of
    // it.
    across = !gathered && rows.count > 1 && magnitude(rows.pitch[1]) < magnitude(rows.step[1]);
    tile_length = least(rows.length, across ? capacity / least(rows.count, 64) : capacity);
    if (tile_length > kLine && across) tile_length -= tile_length % kLine;
    tile_count = least(rows.count, capacity / tile_length);
  }
  // Tiles end where cache lines of the output do.
  const auto begin = reinterpret_cast<std::uintptr_t>(rows.data[0]) % kLineBytes / sizeof(T);
  const std::int64_t begun =
      copy_output && tile_length >= kLine ? static_cast<std::int64_t>(begin) : 0;
  for (std::int64_t row = 0; row < rows.count; row += tile_count) {
    const std::int64_t count = least(tile_count, rows.count - row);
    std::int64_t length = tile_length - begun;
    for (std::int64_t column = 0; column < rows.length; column += length, length = tile_length) {
      length = least(length, rows.length - column);
      char* const output = rows.data[0] + row * rows.pitch[0] + column * rows.step[0];
      const char* const input =
          rows.data[1] + row * rows.pitch[1] + (gathered ? 0 : column * rows.step[1]);
      if (across && !buffer_output) {
        for (std::int64_t r = 0; r < count; ++r) {
          const char* const target = output + r * rows.pitch[0];
          for (std::int64_t i = 0; i < length * std::int64_t{sizeof(Out)}; i += kLineBytes)
            __builtin_prefetch(target + i, 1);
        }
      }
      if (gathered) {
        pack_gathered<Bits<T>>(buffer, length * size, length, count, input, rows.offsets + column,
                               rows.pitch[1]);
      } else if (pack_input) {
        pack<Bits<T>>(buffer, length * size, length, count, input, rows.step[1], rows.pitch[1]);
      }
      visit(Tile<T, Out>{row, column, count, length, buffer_output ? buffer : output,
                         pack_input ? buffer : input, buffer_output ? length * size : rows.pitch[0],
                         pack_input ? length * size : rows.pitch[1],
                         rows.row_offsets != nullptr ? rows.row_offsets + row : nullptr,
                         rows.non_temporal && !buffer_output});
      if (unpack_output) {
        unpack<Bits<T>>(output, rows.step[0], rows.pitch[0], buffer, length, count);
      } else if (copy_output) {
        for (std::int64_t r = 0; r < count; ++r)
          copy_non_temporal(reinterpret_cast<std::uint8_t*>(output + r * rows.pitch[0]),
                            reinterpret_cast<const std::uint8_t*>(buffer + r * length * size),
                            length * size);
      }
    }
  }
  if (rows.non_temporal) finish_non_temporal();
}

// Calls visit(runs) for the tiles.
template <class T, class Visit>
DMLOPS_INLINE void for_each_runs(const Rows& rows, const Visit& visit) {
  for_each_tile<T>(rows, [&visit](const Tile<T>& tile) DMLOPS_LAMBDA_INLINE {
    const bool one_run = tile.contiguous();
    Runs<T> runs;
    runs.output = tile.output;
    runs.input = tile.input;
    runs.output_pitch = tile.output_pitch;
    runs.input_pitch = tile.input_pitch;
    runs.output_offsets = tile.row_offsets;
    runs.length = one_run ? tile.length * tile.count : tile.length;
    runs.count = one_run ? 1 : tile.count;
    runs.non_temporal = tile.non_temporal;
    visit(runs);
  });
}

// Calls visit(output, input) for each row of layers, in which nothing needs a buffer. Processors do
// not foresee where the next layer is; what is short enough comes in time without being asked for.
template <class T, class Visit>
DMLOPS_INLINE void for_each_layered_row(const Rows& rows, const Visit& visit) {
  const std::int64_t bytes = rows.length * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t layers = rows.layers, count = rows.count, next = rows.layer_pitch[1];
  const std::int64_t output_pitch = rows.pitch[0], input_pitch = rows.pitch[1];
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    char* output = rows.data[0] + layer * rows.layer_pitch[0];
    const char* input = rows.data[1] + layer * next;
    for (std::int64_t r = 0; r < count; ++r, output += output_pitch, input += input_pitch) {
      if (bytes >= 4 * kLineBytes) prefetch_lines(input + next, bytes);
      visit(reinterpret_cast<T*>(output), reinterpret_cast<const T*>(input));
    }
  }
}

// Dense rows from every second element along them?
template <class T>
DMLOPS_INLINE bool every_second_of(const Rows& rows) {
  constexpr std::int64_t size = sizeof(T);
  return rows.offsets == nullptr && rows.step[0] == size && rows.step[1] == 2 * size &&
         (rows.count == 1 || magnitude(rows.pitch[1]) >= 2 * size);
}

// map_rows, but for one dense row: a function of its own, so that small calls do not set up its
// buffer.
template <class T, class V, int kUnroll, class Formula>
DMLOPS_NO_INLINE void map_any_rows(const Rows& rows, const Formula& given) {
  const Formula formula = given;  // no part of it is read again after a store
  const auto indexed = [&formula](V v, std::int64_t) DMLOPS_LAMBDA_INLINE { return formula(v); };
  if (rows.layers > 1) {
    const std::int64_t length = rows.length;
    return for_each_layered_row<T>(rows, [&](T* output, const T* input) DMLOPS_LAMBDA_INLINE {
      stream<V, kUnroll>(output, input, length, indexed);
    });
  }
  if (every_second_of<T>(rows) && rows.length >= 2 * kLanes<V>) {
    for (std::int64_t r = 0; r < rows.count; ++r) {
      stream<V, kUnroll>(reinterpret_cast<T*>(rows.data[0] + r * rows.pitch[0]),
                         EverySecond<T>(rows.data[1] + r * rows.pitch[1]), rows.length, indexed,
                         rows.non_temporal);
    }
    if (rows.non_temporal) finish_non_temporal();
    return;
  }
  if (transposes<T>(rows)) return map_columns<T, V>(rows, formula);
  for_each_runs<T>(rows, [&indexed](const Runs<T>& runs) DMLOPS_LAMBDA_INLINE {
    for (std::int64_t r = 0; r < runs.count; ++r) {
      stream<V, kUnroll>(runs.output_row(r), runs.input_row(r), runs.length, indexed,
                         runs.non_temporal);
    }
  });
}

// Is it a single dense run?
template <class T>
DMLOPS_INLINE bool is_one_run(const Rows& rows) {
  constexpr std::int64_t size = sizeof(T);
  return rows.count == 1 && rows.layers == 1 && rows.step[0] == size && rows.step[1] == size &&
         rows.offsets == nullptr && !rows.non_temporal;
}

// output = formula(input) for every element, on vectors of type V.
template <class T, class V, int kUnroll, class Formula>
DMLOPS_INLINE void map_rows(const Rows& rows, const Formula& formula) {
  if (!is_one_run<T>(rows)) return map_any_rows<T, V, kUnroll>(rows, formula);
  stream<V, kUnroll>(reinterpret_cast<T*>(rows.data[0]), reinterpret_cast<const T*>(rows.data[1]),
                     rows.length,
                     [&formula](V v, std::int64_t) DMLOPS_LAMBDA_INLINE { return formula(v); });
}

// A formula on dense runs.
template <class T, class In = T>
using RunsFunction = void (*)(const Runs<T, In>& runs, const void* formula);

// map_rows for long formulas: all layouts share one compiled copy of them.
template <class T>
DMLOPS_NO_INLINE void map_runs(const Rows& rows, RunsFunction<T> map, const void* formula) {
  const auto visit = [=](const Runs<T>& runs) DMLOPS_LAMBDA_INLINE { map(runs, formula); };
  if (rows.layers == 1)
    return transposes<T>(rows) ? for_each_transposed_tile<T>(rows, visit)
                               : for_each_runs<T>(rows, visit);
  Runs<T> runs;
  runs.output_pitch = rows.pitch[0];
  runs.input_pitch = rows.pitch[1];
  runs.length = rows.length;
  runs.count = rows.count;
  for (std::int64_t layer = 0; layer < rows.layers; ++layer) {
    runs.output = rows.data[0] + layer * rows.layer_pitch[0];
    runs.input = rows.data[1] + layer * rows.layer_pitch[1];
    visit(runs);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
