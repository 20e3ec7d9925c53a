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
  // So many of its rows, from the first one given on.
  Tile part(std::int64_t first, std::int64_t rows) const {
    Tile result = *this;
    result.row += first;
    result.count = rows;
    if (row_offsets != nullptr) {
      result.row_offsets += first;
    } else {
      result.output += first * output_pitch;
    }
    result.input += first * input_pitch;
    return result;
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

// Calls visit(runs) until all rows are covered.
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

// Dense rows from every second element along them?
template <class T>
DMLOPS_INLINE bool every_second_of(const Rows& rows) {
  constexpr std::int64_t size = sizeof(T);
  return rows.offsets == nullptr && rows.step[0] == size && rows.step[1] == 2 * size &&
         rows.length >= 2 * kLanes<Vec<Bits<T>>> &&
         (rows.count == 1 || magnitude(rows.pitch[1]) >= 2 * size);
}

// Is it a single dense run?
template <class T>
DMLOPS_INLINE bool is_one_run(const Rows& rows) {
  constexpr std::int64_t size = sizeof(T);
  return rows.count == 1 && rows.layers == 1 && rows.step[0] == size && rows.step[1] == size &&
         rows.offsets == nullptr && !rows.non_temporal;
}

// A formula on dense runs.
template <class T, class In = T>
using RunsFunction = void (*)(const Runs<T, In>& runs, const void* formula);

// Rows of which nothing needs a buffer.
template <class T>
DMLOPS_INLINE Runs<T> in_place(const Rows& rows) {
  Runs<T> runs;
  runs.output = rows.data[0];
  runs.input = rows.data[1];
  runs.output_pitch = rows.pitch[0];
  runs.input_pitch = rows.pitch[1];
  runs.length = rows.length;
  runs.count = rows.count;
  runs.non_temporal = rows.non_temporal;
  return runs;
}

// What the layouts come down to. The ways there are compiled once for all formulas.
template <class T>
struct Loops {
  RunsFunction<T> dense;
  RunsFunction<T> short_runs;  // a cache line long or a few, from a buffer
  // Where every second of the input's elements counts. Where null, these are packed first.
  RunsFunction<T> every_second = nullptr;
};

// output = formula(input) for every element. A function of its own, so that small calls do not set
// up its buffer.
template <class T>
DMLOPS_NO_INLINE void map_any_rows(const Rows& rows, const Loops<T>& loops, const void* formula) {
  if (rows.layers > 1) {
    Runs<T> runs = in_place<T>(rows);
    runs.layers = rows.layers;
    runs.output_layer_pitch = rows.layer_pitch[0];
    runs.input_layer_pitch = rows.layer_pitch[1];
    loops.dense(runs, formula);
  } else if (loops.every_second != nullptr && every_second_of<T>(rows)) {
    loops.every_second(in_place<T>(rows), formula);
    if (rows.non_temporal) finish_non_temporal();
  } else if (transposes<T>(rows)) {
    for_each_transposed_tile<T>(rows,
                                [&](const Runs<T>& runs) { loops.short_runs(runs, formula); });
  } else {
    for_each_runs<T>(rows, [&](const Runs<T>& runs) { loops.dense(runs, formula); });
  }
}

// The loops of a formula on vectors of type V. They copy it: no part is read again after a store.
template <class T, class V, int kUnroll, class Formula>
struct VectorLoops {
  static void dense(const Runs<T>& runs, const void* formula) {
    each_run(runs, formula, [](const T* input) DMLOPS_LAMBDA_INLINE { return input; });
  }

  static void every_second(const Runs<T>& runs, const void* formula) {
    each_run(runs, formula, [](const T* input) DMLOPS_LAMBDA_INLINE {
      return EverySecond<T>(reinterpret_cast<const char*>(input));
    });
  }

  static void short_runs(const Runs<T>& given, const void* formula) {
    const Formula f = *static_cast<const Formula*>(formula);
    const Runs<T> runs = given;
    runs.for_each([&](T* output, const T* input) DMLOPS_LAMBDA_INLINE {
      if (runs.non_temporal) {
        write_run_non_temporal<V>(output, input, runs.length, f);
      } else {
        write_run<V>(output, input, runs.length, f);
      }
    });
  }

 private:
  // source(input): what is read of a run.
  template <class Source>
  DMLOPS_INLINE static void each_run(const Runs<T>& given, const void* formula,
                                     const Source& source) {
    const Formula f = *static_cast<const Formula*>(formula);
    const auto indexed = [&f](V v, std::int64_t) DMLOPS_LAMBDA_INLINE { return f(v); };
    const Runs<T> runs = given;
    if (runs.non_temporal && runs.length > kLineBytes / std::int64_t{sizeof(T)}) {
      runs.for_each([&](T* output, const T* input) DMLOPS_LAMBDA_INLINE {
        stream_non_temporal<V>(output, source(input), runs.length, indexed);
      });
    } else {  // in a loop of its own, as rows may be short
      runs.for_each([&](T* output, const T* input) DMLOPS_LAMBDA_INLINE {
        stream<V, kUnroll>(output, source(input), runs.length, indexed);
      });
    }
  }
};

// output = formula(input) for every element, on vectors of type V.
template <class T, class V, int kUnroll, class Formula>
DMLOPS_INLINE void map_rows(const Rows& rows, const Formula& formula) {
  // Without the hint the loop below would be taken for a rare one, and left where it falls.
  if (__builtin_expect(!is_one_run<T>(rows), 0)) {
    using Own = VectorLoops<T, V, kUnroll, Formula>;
    static constexpr Loops<T> loops = {&Own::dense, &Own::short_runs, &Own::every_second};
    const Formula copy = formula;  // so that the other may stay in registers
    return map_any_rows<T>(rows, loops, &copy);
  }
  stream<V, kUnroll>(reinterpret_cast<T*>(rows.data[0]), reinterpret_cast<const T*>(rows.data[1]),
                     rows.length,
                     [&formula](V v, std::int64_t) DMLOPS_LAMBDA_INLINE { return formula(v); });
}

// map_rows for long formulas, with one loop for all layouts.
template <class T>
DMLOPS_INLINE void map_runs(const Rows& rows, RunsFunction<T> map, const void* formula) {
  map_any_rows<T>(rows, {map, map}, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
