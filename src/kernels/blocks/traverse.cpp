// The traversal of rows in dense blocks, compiled once for all formulas.
#include "kernels/blocks/traverse.hpp"

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/pack.hpp"
#include "kernels/blocks/transpose_tiles.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

char* output_row(const Rows& rows, std::int64_t r) {
  return rows.data[0] + (rows.row_offsets != nullptr ? rows.row_offsets[r] : r * rows.pitch[0]);
}

// Points a block's output to the operand.
void place_output(Block& block, const Rows& rows, std::int64_t size) {
  block.output = rows.data[0] + block.column * size;
  block.output_pitch = rows.pitch[0];
  if (rows.row_offsets != nullptr) {
    block.output_offsets = rows.row_offsets + block.row;
  } else {
    block.output += block.row * rows.pitch[0];
  }
}

// Writes dense results to a range of an output row.
void write(const Rows& rows, std::int64_t size, std::int64_t row, std::int64_t column,
           std::int64_t length, const char* results, const char* ahead = nullptr) {
  char* const target = output_row(rows, row);
  if (rows.layout[0] != Layout::in_place) {
    const std::int64_t* const offsets = rows.offsets[0];
    const std::int64_t step = rows.step[0], run = rows.run[0];
    if (offsets != nullptr)
      return unpack(size, target, step, offsets + column / run, results, length, run);
    return unpack(size, target + column * step, step, nullptr, results, length, 1);
  }
  if (rows.streaming) return copy_streaming(target + column * size, results, length * size, ahead);
  copy_run(target + column * size, results, length * size);
}

// Packs ranges of the input's rows. The buffer needs kSpill extra bytes.
void pack_input(const Rows& rows, std::int64_t size, std::int64_t row, std::int64_t column,
                std::int64_t length, std::int64_t count, char* buffer) {
  pack(size, buffer, length * size, length, count, source_of(rows, 1, row, column), true);
}

// Fills each row with one of the values.
template <class U>
void fill_rows(const Rows& rows, std::int64_t row, std::int64_t count, const U* values) {
  using V = Vec<U>;
  constexpr std::int64_t step = sizeof(V);
  const std::int64_t bytes = rows.length * std::int64_t{sizeof(U)};
  std::int64_t r = 0;
  if (bytes < step && rows.row_offsets == nullptr && rows.pitch[0] == bytes) {
    r = fill_runs<U>(output_row(rows, row), bytes, count,
                     [values](std::int64_t i) DMLOPS_LAMBDA_INLINE {
                       return reinterpret_cast<const char*>(values + i);
                     });
  }
  for (; r < count; ++r) {
    char* const target = output_row(rows, row + r);
    const V filled = splat<V>(values[r]);
    if (bytes >= step) {
      for (std::int64_t i = 0; i + step < bytes; i += step) store_element(target + i, filled);
      store_element(target + bytes - step, filled);
    } else {
      alignas(kVectorBytes) char lanes[sizeof(V)];
      store_element(lanes, filled);
      copy_short(target, lanes, bytes);
    }
  }
}

// Traverses rows that broadcast one element each: computes each result once, and fills its row.
template <class U>
void traverse_broadcast(const Rows& rows, const Traversal& t) {
  constexpr std::int64_t kRows = 512, capacity = kBlockBytes / sizeof(U);
  const bool streams = rows.streaming && rows.length * t.size >= kShortestStreamedRow;
  alignas(kVectorBytes) U results[kRows + kSpill];
  alignas(kVectorBytes) char filled[kBlockBytes];
  for (std::int64_t row = 0; row < rows.count; row += kRows) {
    Block block;
    block.rows = &rows;
    block.row = row;
    block.length = min(kRows, rows.count - row);
    block.output = reinterpret_cast<char*>(results);
    block.input = block.output;
    pack<U>(block.output, 0, block.length, 1,
            {rows.data[1] + row * rows.pitch[1], 0, rows.pitch[1], nullptr});
    t.transforms.dense(block, t.context);
    if (rows.layout[0] == Layout::in_place && !streams) {
      fill_rows<U>(rows, row, block.length, results);
      continue;
    }
    for (std::int64_t r = 0; r < block.length; ++r) {
      fill_row<U>(filled, min(rows.length, capacity), results[r]);
      for (std::int64_t column = 0; column < rows.length; column += capacity)
        write(rows, t.size, row + r, column, min(capacity, rows.length - column), filled);
    }
  }
}

// Traverses rows that all broadcast one input row: computes it once, and copies the results to each
// row.
void traverse_repeated(const Rows& rows, const Traversal& t) {
  alignas(kVectorBytes) char buffer[kBlockBytes + kSpill];
  const std::int64_t capacity = kBlockBytes / t.size;
  for (std::int64_t column = 0; column < rows.length; column += capacity) {
    Block block;
    block.rows = &rows;
    block.column = column;
    block.length = min(capacity, rows.length - column);
    block.output = buffer;
    block.input = buffer;
    if (rows.layout[1] == Layout::in_place) {
      block.input = rows.data[1] + column * t.size;
    } else {
      pack_input(rows, t.size, 0, column, block.length, 1, buffer);
    }
    t.transforms.dense(block, t.context);
    if (rows.layout[0] == Layout::in_place && !rows.streaming) {
      // Writes several contiguous rows at a time.
      const std::int64_t bytes = block.length * t.size;
      const bool contiguous = rows.row_offsets == nullptr && rows.pitch[0] == bytes;
      const std::int64_t together = contiguous ? min(kBlockBytes / bytes, rows.count) : 1;
      for (std::int64_t done = 1; done < together; done *= 2)
        copy_run(buffer + done * bytes, buffer, min(done, together - done) * bytes);
      for (std::int64_t r = 0; r < rows.count; r += together)
        copy_run(output_row(rows, r) + column * t.size, buffer,
                 min(together, rows.count - r) * bytes);
      continue;
    }
    for (std::int64_t r = 0; r < rows.count; ++r)
      write(rows, t.size, r, column, block.length, buffer);
  }
}

// Merges rows that are contiguous in both operands.
void merge_rows(Block& block, std::int64_t size, std::int64_t input_step) {
  if (block.count == 1 || block.output_offsets != nullptr ||
      block.output_pitch != block.length * size || block.input_pitch != block.length * input_step)
    return;
  block.length *= block.count;
  block.count = 1;
}

// True if the transforms read operand 1 where it is.
bool reads_in_place(const Rows& rows, const Traversal& t) {
  return rows.layout[1] == Layout::in_place || t.reads_constants;
}

// Returns the loop that needs no buffer, or null.
Transform transform_in_place(const Rows& rows, const Traversal& t) {
  if (rows.layout[0] != Layout::in_place) return nullptr;
  if (reads_in_place(rows, t)) return rows.streaming ? t.transforms.streaming : t.transforms.dense;
  const bool every_second = rows.layout[1] == Layout::strided && rows.step[1] == 2 * t.size &&
                            rows.length * t.size >= 2 * kVectorBytes;
  return every_second && !rows.streaming ? t.transforms.every_second : nullptr;
}

void traverse_blocks(const Rows& rows, const Traversal& t) {
  alignas(kVectorBytes) char buffer[kBlockBytes + kSpill];
  const std::int64_t size = t.size, capacity = kBlockBytes / size, line = kLineBytes / size;
  const Transform transform = transform_in_place(rows, t);
  const bool packed = transform == nullptr && !reads_in_place(rows, t);
  const bool buffered =
      transform == nullptr && (rows.streaming || rows.layout[0] != Layout::in_place);
  const bool transposed = rows.layout[1] == Layout::transposed;
  std::int64_t block_length = rows.length, block_count = rows.count;
  if (packed || buffered) {
    // A block of a transposed input has enough rows for whole cache lines.
    block_length = min(rows.length, transposed ? capacity / min(rows.count, 64) : capacity);
    if (transposed && block_length > line) block_length -= block_length % line;
    if (t.shared_columns > 0) block_length = min(block_length, t.shared_columns);
    block_count = min(rows.count, capacity / block_length);
  }
  // Non-temporal stores write whole cache lines, so the first block ends at the end of an output
  // line.
  const auto begun =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(rows.data[0]) % kLineBytes) / size;
  const bool aligned = buffered && rows.streaming && block_length < rows.length;
  const std::int64_t first = aligned && block_length > begun ? block_length - begun : block_length;
  // Rows are packed once if all are equal, and a broadcast row once for its blocks, unless results
  // overwrite them.
  const bool reused = packed && !buffered && t.shared_columns == 0;
  const bool equal_rows = reused && rows.pitch[1] == 0 && block_length == rows.length;
  const bool equal_blocks = reused && rows.layout[1] == Layout::broadcast && block_count == 1;
  const auto visit = [&](std::int64_t row, std::int64_t column, std::int64_t length) {
    Block block;
    block.rows = &rows;
    block.row = row;
    block.column = column;
    block.length = length;
    block.count = min(block_count, rows.count - row);
    block.input = rows.data[1] + row * rows.pitch[1] + column * rows.step[1];
    block.input_pitch = rows.pitch[1];
    if (packed) {
      if (!(equal_rows && row > 0) && !(equal_blocks && column > 0))
        pack_input(rows, size, row, column, length, block.count, buffer);
      block.input = buffer;
      block.input_pitch = length * size;
    }
    const char* const ahead = packed ? nullptr : block.input + kBlockAhead;
    if (buffered) {
      block.output = buffer;
      block.output_pitch = length * size;
    } else {
      place_output(block, rows, size);
    }
    const std::int64_t count = block.count;
    if (t.elementwise) merge_rows(block, size, packed ? size : rows.step[1]);
    (buffered || packed ? t.transforms.dense : transform)(block, t.context);
    if (!buffered) return;
    const bool contiguous = rows.row_offsets == nullptr && length == rows.length &&
                            rows.pitch[0] == length * size && rows.layout[0] == Layout::in_place;
    const std::int64_t together = contiguous ? count : 1;
    for (std::int64_t r = 0; r < count; r += together)
      write(rows, size, row + r, column, length * together, buffer + r * length * size,
            ahead == nullptr ? nullptr : ahead + r * block.input_pitch);
  };
  if (transposed || t.shared_columns > 0) {
    for (std::int64_t column = 0, length = first; column < rows.length;
         column += length, length = block_length) {
      length = min(length, rows.length - column);
      for (std::int64_t row = 0; row < rows.count; row += block_count) visit(row, column, length);
    }
    return;
  }
  for (std::int64_t row = 0; row < rows.count; row += block_count) {
    for (std::int64_t column = 0, length = first; column < rows.length;
         column += length, length = block_length) {
      length = min(length, rows.length - column);
      visit(row, column, length);
    }
  }
}

// ---- Transposition by squares ------------------------------------------------------------------

// Iterates over tiles along the columns, the memory order of the input.
template <class U>
void traverse_transposed(const Rows& rows, const Traversal& t) {
  constexpr std::int64_t size = sizeof(U), side = kSide<U>;
  // Longer rows have less overhead; higher tiles use more of each input line.
  constexpr std::int64_t lines = size >= 4 ? 4 : 2, height = 256 / lines, width = lines * side;
  constexpr std::int64_t pitch =
      (lines + 1) * kLineBytes;  // not a power of two, against set conflicts
  alignas(kLineBytes) char buffer[height * pitch];
  const char* const input = rows.data[1];
  const bool gathered = rows.offsets[1] != nullptr;
  const bool prefetches = !rows.streaming && rows.length * rows.count * size >= kUnlikelyCached;
  // A smaller first tile aligns the others to cache lines.
  const std::int64_t left = gathered ? 0 : -past_line(rows.data[0], rows.pitch[0], size);
  const std::int64_t top = gathered                  ? -past_line(input, 0, size)
                           : rows.count < 4 * height ? 0
                                                     : -past_line(input, rows.step[1], size);
  struct Corner {
    std::int64_t column, row;
  };
  const auto tile_at = [&rows](Corner from) {
    return TransposeTile{Span(from.column, width, rows.length, side),
                         Span(from.row, height, rows.count, side)};
  };
  for (Corner corner{left, top}, next; corner.column < rows.length; corner = next) {
    next = {corner.column, corner.row + height};
    if (next.row >= rows.count) next = {corner.column + width, top};
    const TransposeTile tile = tile_at(corner);
    if (prefetches) {
      for (std::int64_t r = 0; r < tile.rows.count; ++r)
        prefetch_lines<2>(output_row(rows, tile.rows.begin + r) + tile.columns.begin * size,
                          tile.columns.count * size);
    }
    transpose_tile<U>(buffer, pitch, rows, tile, tile_at(next));
    Block block;
    block.rows = &rows;
    block.row = tile.rows.begin;
    block.column = tile.columns.begin;
    block.count = tile.rows.count;
    block.length = tile.columns.count;
    block.input = buffer;
    block.input_pitch = pitch;
    block.output = buffer;
    block.output_pitch = pitch;
    if (!rows.streaming) {
      place_output(block, rows, size);
      t.transforms.dense(block, t.context);
      continue;
    }
    // Each cache line is written by one tile.
    const std::int64_t begin = corner.column < 0 ? 0 : corner.column;
    const std::int64_t length = min(corner.column + width, rows.length) - begin;
    const std::int64_t skipped = (begin - tile.columns.begin) * size;
    if (t.transforms.streaming != nullptr) {
      place_output(block, rows, size);
      block.column = begin;
      block.length = length;
      block.input += skipped;
      block.output += skipped;
      t.transforms.streaming(block, t.context);
      continue;
    }
    t.transforms.dense(block, t.context);
    for (std::int64_t r = 0; r < tile.rows.count; ++r)
      write(rows, size, tile.rows.begin + r, begin, length, buffer + r * pitch + skipped);
  }
}

// True if rows and columns fill a square. With vectors of 16 bytes, squares do not pay off. Squares
// overlap, so an operand that shares the output's memory would be read after it was written.
bool has_squares(const Rows& rows, std::int64_t size) {
  const std::int64_t side = kLineBytes / size;
  for (int k = 2; k < rows.operands; ++k) {
    if (rows.data[k] == rows.data[0]) return false;
  }
  return kVectorBytes > 16 && rows.layout[0] == Layout::in_place &&
         rows.layout[1] == Layout::transposed && rows.count >= side && rows.length >= side;
}

template <class U>
void traverse_sized(const Rows& rows, const Traversal& t) {
  if (t.elementwise && rows.layout[1] == Layout::broadcast) return traverse_broadcast<U>(rows, t);
  if (t.elementwise && rows.count > 1 && rows.pitch[1] == 0) return traverse_repeated(rows, t);
  if (has_squares(rows, t.size)) return traverse_transposed<U>(rows, t);
  traverse_blocks(rows, t);
}

// Calls visit() for each iteration of the outer loops, with the rows' data pointers advanced.
template <class Visit>
void for_each_outer(Rows& rows, const Visit& visit) {
  std::int64_t index[kMaxRank] = {};
  for (;;) {
    visit();
    int d = 0;
    for (; d < rows.outer_rank; ++d) {
      const Loop& loop = rows.outer[d];
      if (++index[d] < loop.size) {
        for (int k = 0; k < rows.operands; ++k) rows.data[k] += loop.strides[k];
        break;
      }
      index[d] = 0;
      for (int k = 0; k < rows.operands; ++k) rows.data[k] -= loop.strides[k] * (loop.size - 1);
    }
    if (d == rows.outer_rank) return;
  }
}

}  // namespace

void traverse(const Rows& given, const Traversal& t) {
  Rows rows = given;
  const Transform transform = transform_in_place(rows, t);
  const bool repeated = t.elementwise && rows.count > 1 && rows.pitch[1] == 0;
  if (transform != nullptr && !repeated) {
    Block block;
    block.rows = &rows;
    block.length = rows.length;
    block.count = rows.count;
    place_output(block, rows, t.size);
    block.input_pitch = rows.pitch[1];
    if (t.elementwise) merge_rows(block, t.size, rows.step[1]);
    for_each_outer(rows, [&] {
      block.output = rows.data[0];
      block.input = rows.data[1];
      transform(block, t.context);
    });
    if (rows.streaming) finish_non_temporal();
    return;
  }
  for_each_outer(rows, [&] {
    switch (t.size) {
      case 1:
        return traverse_sized<std::uint8_t>(rows, t);
      case 2:
        return traverse_sized<std::uint16_t>(rows, t);
      case 4:
        return traverse_sized<std::uint32_t>(rows, t);
      default:
        return traverse_sized<std::uint64_t>(rows, t);
    }
  });
  if (rows.streaming) finish_non_temporal();
}

}  // namespace dmlops::DMLOPS_TARGET
