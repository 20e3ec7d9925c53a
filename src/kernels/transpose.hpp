// Elements that lie dense across the rows and not along them: squares of them are transposed, a
// cache line wide and high, so that each line of the input is read once and each of the output is
// written at once.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/move.hpp"
#include "kernels/stream.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class U>
constexpr int kSide = kLineBytes / static_cast<int>(sizeof(U));  // of a square

// Every second 16 bytes of two vectors, from the first or the second (kFirst = 1) on.
template <int kFirst, class V, std::size_t... kIndex>
DMLOPS_INLINE V every_second_quad(V a, V b, std::index_sequence<kIndex...>) {
  using Halves = typename VectorOf<std::uint64_t, sizeof(V)>::type;
  return bit_cast<V>(shuffle<(kIndex / 2 * 4 + kFirst * 2 + kIndex % 2)...>(bit_cast<Halves>(a),
                                                                            bit_cast<Halves>(b)));
}
template <int kFirst, class V>
DMLOPS_INLINE V every_second_quad(V a, V b) {
  return every_second_quad<kFirst>(a, b, std::make_index_sequence<sizeof(V) / 8>());
}

// Makes of four vectors the rows of their 16 bytes: the first of all four, then the second.
template <class V>
DMLOPS_INLINE void gather_quads(V (&v)[4]) {
  for (std::size_t round = sizeof(V) / 16; round > 1; round /= 2) {
    const V next[4] = {every_second_quad<0>(v[0], v[1]), every_second_quad<0>(v[2], v[3]),
                       every_second_quad<1>(v[0], v[1]), every_second_quad<1>(v[2], v[3])};
    for (int i = 0; i < 4; ++i) v[i] = next[i];
  }
}

// Transposes a square: kSide columns, that of index c at column(c), into as many rows, `pitch`
// bytes apart. All of a column's line is read at once, since the lines of columns that lie a power
// of two apart drive each other out of the cache.
template <class U, class Columns>
DMLOPS_INLINE void transpose_columns(char* target, std::int64_t pitch, const Columns& column) {
  using V = Vec<U>;
  constexpr int height = 16 / static_cast<int>(sizeof(U));  // elements in 16 bytes
  constexpr int quads = kVectorBytes / 16, parts = kLineBytes / kVectorBytes;
  V squares[parts][4][height];  // of 16 bytes; four groups of columns
  for (int group = 0; group < 4; ++group) {
    for (int part = 0; part < parts; ++part) {
      V(&rows)[height] = squares[part][group];
#pragma GCC unroll 16
      for (int i = 0; i < height; ++i)
        rows[i] = load_element<V>(column(group * height + i) + part * kVectorBytes);
      transpose_quads(rows);
    }
  }
  for (int part = 0; part < parts; ++part) {
    for (int i = 0; i < height; ++i) {
      const V(&groups)[4][height] = squares[part];
      V line[4] = {groups[0][i], groups[1][i], groups[2][i], groups[3][i]};
      gather_quads(line);
      for (int k = 0; k < 4; ++k) {
        const int row = (part * quads + k / parts) * height + i;
        store_element(target + row * pitch + k % parts * kVectorBytes, line[k]);
      }
    }
  }
}

// Not inlined, as they are the same for every formula.
template <class U>
DMLOPS_NO_INLINE void transpose_square(char* target, std::int64_t pitch, const char* source,
                                       std::int64_t step) {
  transpose_columns<U>(target, pitch,
                       [source, step](int c) DMLOPS_LAMBDA_INLINE { return source + c * step; });
}
template <class U>
DMLOPS_NO_INLINE void transpose_square(char* target, std::int64_t pitch, const char* source,
                                       const std::int64_t* offsets) {
  transpose_columns<U>(
      target, pitch, [source, offsets](int c) DMLOPS_LAMBDA_INLINE { return source + offsets[c]; });
}

// Is each row of the output dense, and each column of the input, with a square of both? Vectors of
// 16 bytes gain nothing from squares.
template <class T>
DMLOPS_INLINE bool transposes(const Rows& rows) {
  constexpr std::int64_t size = sizeof(T);
  return kVectorBytes > 16 && rows.pitch[1] == size && rows.count >= kSide<T> &&
         rows.length >= kSide<T> && rows.step[0] == size &&
         (rows.offsets != nullptr || rows.step[1] != size);
}

// target[i] = formula(source[i]) for i < count, at least a vector of them, from memory apart.
template <class V, class T, class Formula>
DMLOPS_INLINE void write_run(T* target, const T* source, std::int64_t count,
                             const Formula& formula) {
  constexpr std::int64_t lanes = kLanes<V>;
  const std::int64_t last = count - lanes;
  std::int64_t i = 0;
  for (; i <= last; i += lanes) store(target + i, formula(load<V>(source + i)));
  if (i < count) store(target + last, formula(load<V>(source + last)));
}

// The same past the caches. There may be less than a vector, if before `source` are elements, too.
template <class V, class T, class Formula>
DMLOPS_INLINE void write_run_non_temporal(T* target, const T* source, std::int64_t count,
                                          const Formula& formula) {
  const auto place = reinterpret_cast<std::uintptr_t>(target);
  if ((place | static_cast<std::uintptr_t>(count) * sizeof(T)) % kLineBytes != 0) {
    return stream_non_temporal<V>(target, source, count,
                                  [&formula](V v, std::int64_t)
                                      DMLOPS_LAMBDA_INLINE { return formula(v); });
  }
  for (std::int64_t i = 0; i < count; i += kLanes<V>)
    store_non_temporal(target + i, formula(load<V>(source + i)));
}

// What lies between `from` and `from + most`, which may both be outside of `size`: at least a
// square's side, which may overlap the part before. What lies before all of it is `outside`, a
// negative number.
struct Part {
  std::int64_t begin, count, outside;

  Part(std::int64_t from, std::int64_t most, std::int64_t size, std::int64_t side)
      : begin(least(from < 0 ? 0 : from, size - side)), outside(least(from, 0)) {
    const std::int64_t rest = least(from + most, size) - begin;
    count = rest < side ? side : rest;
  }
};

// How many elements lie between the begin of a cache line and `first`; 0 where what is `pitch`
// bytes away begins elsewhere in its line.
template <class T>
DMLOPS_INLINE std::int64_t past_line(const char* first, std::int64_t pitch) {
  if (pitch % kLineBytes != 0) return 0;
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(first) % kLineBytes /
                                   sizeof(T));
}

struct Area {
  Part across, down;
};

// Calls visit(c, r), the corner of a square, until an area is covered; before each column of
// squares it calls begin(i).
template <class Begin, class Visit>
DMLOPS_INLINE void for_each_square(const Area& area, std::int64_t side, const Begin& begin,
                                   const Visit& visit) {
  const std::int64_t last = area.down.count - side;
  for (std::int64_t i = 0; i < area.across.count; i += side) {
    begin(i);
    const std::int64_t c = least(i, area.across.count - side);
    for (std::int64_t j = area.down.outside, r = -1; r < last; j += side) {
      r = j < 0 ? 0 : least(j, last);
      visit(c, r);
    }
  }
}

// Fills a buffer with the squares of an area. Processors foresee little of this order; each area
// asks for the next, in the second-level cache, since the first one has no place for both.
template <class U>
DMLOPS_NO_INLINE void transpose_area(char* buffer, std::int64_t pitch, const Rows& rows,
                                     const Area& area, const Area& next) {
  constexpr std::int64_t size = sizeof(U), side = kSide<U>;
  const std::int64_t step = rows.step[1];
  const char* const input = rows.data[1] + area.down.begin * size;
  const char* const next_input = rows.data[1] + next.down.begin * size;
  if (rows.offsets != nullptr) {
    const std::int64_t* const offsets = rows.offsets + area.across.begin;
    return for_each_square(
        area, side, [](std::int64_t) {},
        [&](std::int64_t c, std::int64_t r) DMLOPS_LAMBDA_INLINE {
          transpose_square<U>(buffer + r * pitch + c * size, pitch, input + r * size, offsets + c);
        });
  }
  for_each_square(
      area, side,
      [&](std::int64_t i) DMLOPS_LAMBDA_INLINE {
        for (std::int64_t c = i; c < least(i + side, next.across.count); ++c)
          prefetch_lines<2>(next_input + (next.across.begin + c) * step, next.down.count * size);
      },
      [&](std::int64_t c, std::int64_t r) DMLOPS_LAMBDA_INLINE {
        transpose_square<U>(buffer + r * pitch + c * size, pitch,
                            input + (area.across.begin + c) * step + r * size, step);
      });
}

// From so many bytes of output on, its lines are asked for.
constexpr std::int64_t kUnlikelyCached = 1 << 20;

// Calls visit(runs) for such rows, a tile at a time: squares go to a buffer, where the runs begin.
// One tile follows another down the rows, so that the input is read in the order of its memory as
// far as possible.
//
// Past the caches, runs end where cache lines of the output do. Where rows begin elsewhere in their
// lines than their neighbours, each run begins up to a line further on than its tile, which takes
// in another square.
template <class T, class Visit>
DMLOPS_INLINE void for_each_transposed_tile(const Rows& rows, const Visit& visit) {
  constexpr std::int64_t size = sizeof(T), side = kSide<T>;
  // Longer rows take less for each, higher tiles use more of what was read together.
  constexpr std::int64_t lines = size >= 4 ? 4 : 2, height = 256 / lines, width = lines * side;
  constexpr std::int64_t pitch = (lines + 1) * kLineBytes;
  alignas(kLineBytes) char buffer[height * pitch];
  const char* const input = rows.data[1];
  const bool gathered = rows.offsets != nullptr, non_temporal = rows.non_temporal;
  const bool shifted = non_temporal && !gathered && rows.pitch[0] % kLineBytes != 0;
  const bool ask = !non_temporal && rows.length * rows.count * size >= kUnlikelyCached;
  const std::int64_t extra = shifted ? side : 0;
  // The first tile is smaller, if rows or columns are not too short for that.
  const std::int64_t left = gathered ? 0 : -extra - past_line<T>(rows.data[0], rows.pitch[0]);
  const std::int64_t top = gathered                  ? -past_line<T>(input, 0)
                           : rows.count < 4 * height ? 0
                                                     : -past_line<T>(input, rows.step[1]);
  struct Corner {
    std::int64_t column, row;
  };
  for (Corner corner{left, top}, next; corner.column < rows.length; corner = next) {
    next = {corner.column, corner.row + height};
    if (next.row >= rows.count) next = {corner.column + width, top};
    const auto area_at = [&rows, extra](Corner from) DMLOPS_LAMBDA_INLINE {
      return Area{Part(from.column, width + extra, rows.length, side),
                  Part(from.row, height, rows.count, side)};
    };
    const Area area = area_at(corner);
    const Part &across = area.across, &down = area.down;
    const auto output_row = [&](std::int64_t r) DMLOPS_LAMBDA_INLINE {
      return row_at(rows.data[0], down.begin + r, rows.pitch[0], rows.row_offsets);
    };
    // What goes through the caches should be there in time: past them, lines at the ends of rows.
    const bool first = corner.column < 0;
    const bool last = corner.column + width > rows.length;
    if (ask) {
      for (std::int64_t r = 0; r < down.count; ++r)
        prefetch_lines<2>(output_row(r) + across.begin * size, across.count * size);
    } else if (non_temporal && (first || last)) {
      const std::int64_t edge = first ? 0 : (rows.length - 1) * size;
      for (std::int64_t r = 0; r < down.count; ++r) __builtin_prefetch(output_row(r) + edge, 1);
    }
    transpose_area<Bits<T>>(buffer, pitch, rows, area, area_at(next));
    const std::int64_t together = shifted ? 1 : down.count;
    for (std::int64_t r = 0; r < down.count; r += together) {
      std::int64_t begin = corner.column;
      if (shifted)
        begin += distance_to_unit(reinterpret_cast<const T*>(output_row(r)), side) % side;
      if (begin >= rows.length) continue;
      const std::int64_t end = least(begin + width, rows.length);
      // Past the caches goes only what no tile before has written; else there is a vector at least.
      begin = non_temporal ? (begin < 0 ? 0 : begin) : across.begin;
      Runs<T> runs;
      runs.output = rows.data[0] + begin * size;
      runs.input = buffer + r * pitch + (begin - across.begin) * size;
      runs.output_pitch = rows.pitch[0];
      runs.input_pitch = pitch;
      runs.length = end - begin;
      runs.count = together;
      runs.non_temporal = non_temporal;
      if (rows.row_offsets != nullptr) {
        runs.output_offsets = rows.row_offsets + down.begin + r;
      } else {
        runs.output += (down.begin + r) * rows.pitch[0];
      }
      visit(runs);
    }
  }
  if (non_temporal) finish_non_temporal();
}

}  // namespace dmlops::DMLOPS_TARGET
