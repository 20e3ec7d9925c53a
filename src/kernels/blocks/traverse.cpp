// The traversal of rows in dense blocks, compiled once for all formulas.
#include "kernels/blocks/traverse.hpp"

#include "kernels/blocks/memory.hpp"
#include "kernels/blocks/transpose_tiles.hpp"
#include "kernels/blocks/traverse_broadcast.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

// Merges rows that are contiguous in all operands. `step`: bytes between elements of input 0.
void merge_rows(Block& block, const Traversal& t, std::int64_t step) {
  if (block.count == 1 || block.constant != 0) return;
  const std::int64_t bytes = block.length * t.size;
  if (!block.output.is_contiguous(bytes) || !block.inputs[0].is_contiguous(block.length * step))
    return;
  if (t.inputs > 1 && !block.inputs[1].is_contiguous(bytes)) return;
  block.length *= block.count;
  block.count = 1;
}

// Returns the loop that needs no buffer, or null.
Transform transform_in_place(const Rows& rows, const Traversal& t) {
  if (rows.layout[0] != Layout::in_place) return nullptr;
  const int constant = constant_operand(rows, t);
  const auto is_read_in_place = [&rows, constant](int k) {
    return rows.layout[k] == Layout::in_place || k == constant;
  };
  if (t.inputs > 1 && !is_read_in_place(2)) return nullptr;
  if (is_read_in_place(1)) {
    if (!rows.streaming) return t.transforms.dense;
    const bool is_short = t.elementwise && rows.length * t.size < kShortestStreamedInPlace;
    if (!is_short || rows.count == 1) return t.transforms.streaming;
    // Contiguous rows are written together, through a block.
    return are_contiguous(rows, 0, t.size) ? nullptr : t.transforms.dense;
  }
  const bool every_second = rows.layout[1] == Layout::strided && rows.step[1] == 2 * t.size &&
                            rows.length * t.size >= 2 * kVectorBytes;
  return every_second ? t.transforms.every_second : nullptr;
}

void traverse_blocks(const Rows& rows, const Traversal& t, Packer& packer) {
  alignas(kVectorBytes) char buffers[kMaxInputs][kBlockBytes + kSpill];
  const std::int64_t size = t.size, capacity = kBlockBytes / size, line = kLineBytes / size;
  const int constant = constant_operand(rows, t);
  const bool buffered = rows.streaming || rows.layout[0] != Layout::in_place;
  bool packed[kMaxInputs] = {}, packs = false;
  for (int i = 0; i < t.inputs; ++i) {
    packed[i] = rows.layout[i + 1] != Layout::in_place && i + 1 != constant;
    packs = packs || packed[i];
  }
  // Short rows in place would be transformed one by one.
  const bool merges =
      t.elementwise && packs && rows.length * size < kShortRow && are_contiguous(rows, 0, size);
  for (int i = 0; i < t.inputs && merges; ++i)
    packed[i] = packed[i] || (i + 1 != constant && !are_contiguous(rows, i + 1, size));
  // If rows share the cache lines of an input, a block has enough rows for whole lines.
  std::int64_t block_length =
      min(rows.length, rows.by_lines ? capacity / min(rows.count, 64) : capacity);
  if (rows.by_lines && block_length > line) block_length -= block_length % line;
  if (t.shared_columns > 0) block_length = min(block_length, t.shared_columns);
  const std::int64_t block_count = min(rows.count, capacity / block_length);
  // Non-temporal stores write whole cache lines, so the first block ends at the end of an output
  // line.
  const std::int64_t begun = bytes_past_line(rows.data[0]) / size;
  const bool aligned = buffered && rows.streaming && block_length < rows.length;
  const std::int64_t first = aligned && block_length > begun ? block_length - begun : block_length;
  // Rows are packed once if all are equal, unless results overwrite them. The inner loop iterates
  // over the rows if they have several blocks.
  bool by_columns = rows.by_lines || t.shared_columns > 0;
  const char* equal[kMaxInputs] = {};
  bool repeats[kMaxInputs] = {};
  for (int i = 0; i < t.inputs; ++i) {
    if (!packed[i] || t.shared_columns > 0) continue;
    // Short rows are packed next to each other, to be merged.
    if (rows.length * size >= kLongRow) equal[i] = packer.equal_row(rows, i + 1, size);
    if (equal[i] != nullptr || (i == 0 && buffered)) continue;
    repeats[i] = broadcasts_row(rows, i + 1);
    by_columns = by_columns || (repeats[i] && block_length < rows.length);
  }
  const auto visit = [&](std::int64_t row, std::int64_t column, std::int64_t length) {
    Block block;
    block.rows = &rows;
    block.row = row;
    block.column = column;
    block.length = length;
    block.count = min(block_count, rows.count - row);
    block.constant = constant;
    for (int i = 0; i < t.inputs; ++i) {
      if (!packed[i]) {
        block.inputs[i] = rows_in_place<const char>(rows, i + 1, row, column);
        continue;
      }
      if (equal[i] != nullptr) {
        block.inputs[i] = {equal[i] + column * size};
        continue;
      }
      if (!repeats[i] || row == 0)
        packer.pack_rows(rows, i + 1, size, row, column, length, block.count, buffers[i],
                         length * size);
      block.inputs[i] = {buffers[i], length * size};
    }
    const bool prefetches = !packed[0];
    const DenseRows<const char> input = block.inputs[0];
    block.output = buffered ? DenseRows<char>{buffers[0], length * size}
                            : rows_in_place<char>(rows, 0, row, column);
    const std::int64_t count = block.count;
    if (t.elementwise) merge_rows(block, t, size);
    t.transforms.dense(block, t.context);
    if (!buffered) return;
    const bool contiguous = length == rows.length && rows.layout[0] == Layout::in_place &&
                            are_contiguous(rows, 0, size);
    const std::int64_t together = contiguous ? count : 1;
    for (std::int64_t r = 0; r < count; r += together)
      write(rows, size, row + r, column, length * together, buffers[0] + r * length * size,
            prefetches ? input[r] + kBlockAhead : nullptr);
  };
  if (by_columns) {
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

constexpr std::int64_t kShortTiles = 4;  // rows of up to so many tiles are written row by row

// Iterates over tiles along the columns, the memory order of a transposed input, or along short
// rows.
template <class U>
void traverse_transposed(const Rows& rows, const Traversal& t, Packer& packer) {
  constexpr std::int64_t size = sizeof(U), side = kSide<U>;
  constexpr std::int64_t lines = kTileLines<U>, height = kMaxTileRows<U>, width = lines * side;
  constexpr std::int64_t pitch =
      (lines + 1) * kLineBytes;  // not a power of two, against set conflicts
  alignas(kLineBytes) char buffers[kMaxInputs][height * pitch];
  const int constant = constant_operand(rows, t);
  const int transposed = rows.layout[1] == Layout::transposed ? 1 : 2;
  const bool gathered = rows.offsets[transposed] != nullptr;
  const bool prefetches = !rows.streaming && rows.length * rows.count * size >= kUnlikelyCached;
  // Tiles overlap unless each cache line must be written once, or an input that shares the output's
  // memory must be read before it is overwritten.
  bool once = rows.streaming;
  for (int k = 1; k < rows.operands; ++k) once = once || rows.data[k] == rows.data[0];
  // A smaller first tile aligns the others to cache lines.
  const char* const input = rows.data[transposed];
  const std::int64_t left = gathered ? 0 : -past_line(rows.data[0], rows.pitch[0], size);
  std::int64_t top = 0;
  if (rows.pitch[transposed] == size && (gathered || rows.count >= 4 * height))
    top = -past_line(input, gathered ? 0 : rows.step[transposed], size);
  struct Corner {
    std::int64_t column, row;
  };
  const auto tile_at = [&rows](Corner from) {
    return TransposeTile{Span(from.column, width, rows.length, side),
                         Span(from.row, height, rows.count, side)};
  };
  // Short rows are written as a whole, since their cache lines span tiles.
  const bool by_rows = rows.length <= kShortTiles * width;
  for (Corner corner{left, top}, next; corner.column < rows.length && corner.row < rows.count;
       corner = next) {
    if (by_rows) {
      next = {corner.column + width, corner.row};
      if (next.column >= rows.length) next = {left, corner.row + height};
    } else {
      next = {corner.column, corner.row + height};
      if (next.row >= rows.count) next = {corner.column + width, top};
    }
    const TransposeTile tile = tile_at(corner);
    if (prefetches) {
      for (std::int64_t r = 0; r < tile.rows.count; ++r)
        prefetch_lines<2>(row_of(rows, 0, tile.rows.begin + r) + tile.columns.begin * size,
                          tile.columns.count * size);
    }
    Block block;
    block.rows = &rows;
    block.row = once ? corner.row - min(corner.row, 0) : tile.rows.begin;
    block.column = once ? corner.column - min(corner.column, 0) : tile.columns.begin;
    block.count = tile.rows.begin + tile.rows.count - block.row;
    block.length = tile.columns.begin + tile.columns.count - block.column;
    block.constant = constant;
    const std::int64_t skipped =
        (block.row - tile.rows.begin) * pitch + (block.column - tile.columns.begin) * size;
    for (int i = 0; i < t.inputs; ++i) {
      const int k = i + 1;
      block.inputs[i] = {buffers[i] + skipped, pitch};
      if (rows.layout[k] == Layout::transposed) {
        transpose_tile<U>(buffers[i], pitch, rows, k, tile, tile_at(next));
      } else if (rows.layout[k] == Layout::in_place || k == constant) {
        block.inputs[i] = rows_in_place<const char>(rows, k, block.row, block.column);
      } else {
        const char* const equal = packer.equal_row(rows, k, size);
        if (equal != nullptr) {
          block.inputs[i] = {equal + block.column * size};
        } else {
          packer.pack_rows(rows, k, size, block.row, block.column, block.length, block.count,
                           buffers[i] + skipped, pitch);
        }
      }
    }
    if (rows.streaming && t.transforms.streaming == nullptr) {
      char* const results = buffers[0] + skipped;
      block.output = {results, pitch};
      t.transforms.dense(block, t.context);
      for (std::int64_t r = 0; r < block.count; ++r)
        write(rows, size, block.row + r, block.column, block.length, results + r * pitch);
      continue;
    }
    block.output = rows_in_place<char>(rows, 0, block.row, block.column);
    (rows.streaming ? t.transforms.streaming : t.transforms.dense)(block, t.context);
  }
}

// True if rows and columns fill a square. With vectors of 16 bytes, squares do not pay off.
bool has_squares(const Rows& rows, const Traversal& t) {
  const std::int64_t side = kLineBytes / t.size;
  const bool transposed = rows.layout[1] == Layout::transposed ||
                          (t.inputs > 1 && rows.layout[2] == Layout::transposed);
  return kVectorBytes > 16 && rows.layout[0] == Layout::in_place && transposed &&
         rows.count >= side && rows.length >= side;
}

template <class U>
void traverse_sized(const Rows& rows, const Traversal& t, Packer& packer) {
  if (is_formula_of_one(t)) {
    if (rows.layout[1] == Layout::broadcast) return traverse_broadcast<U>(rows, t, packer);
    if (is_repeated(rows)) return traverse_repeated(rows, t, packer);
  }
  if (has_squares(rows, t)) return traverse_transposed<U>(rows, t, packer);
  traverse_blocks(rows, t, packer);
}

// Calls visit(rows) for each iteration of the outer loops, with the rows' data pointers advanced.
template <class Visit>
void for_each_outer(const Rows& given, const Visit& visit) {
  if (given.outer_rank == 0) return visit(given);
  Rows rows = given;
  std::int64_t index[kMaxRank] = {};
  for (;;) {
    visit(rows);
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
    rows.outer_index = index[0];
  }
}

}  // namespace

void traverse(const Rows& all, const Traversal& t) {
  const Transform transform = transform_in_place(all, t);
  const bool repeated = is_formula_of_one(t) && is_repeated(all);
  if (transform != nullptr && !repeated) {
    Block block;
    block.length = all.length;
    block.count = all.count;
    block.constant = constant_operand(all, t);
    block.output = rows_in_place<char>(all, 0, 0, 0);
    for (int i = 0; i < t.inputs; ++i)
      block.inputs[i] = rows_in_place<const char>(all, i + 1, 0, 0);
    if (t.elementwise) merge_rows(block, t, all.step[1]);
    for_each_outer(all, [&](const Rows& rows) {
      block.rows = &rows;
      block.output.data = rows.data[0];
      for (int i = 0; i < t.inputs; ++i) block.inputs[i].data = rows.data[i + 1];
      transform(block, t.context);
    });
    if (all.streaming) finish_non_temporal();
    return;
  }
  Packer packer;
  for_each_outer(all, [&](const Rows& rows) {
    with_element_size(t.size, [&](auto u) { traverse_sized<decltype(u)>(rows, t, packer); });
  });
  if (all.streaming) finish_non_temporal();
}

}  // namespace dmlops::DMLOPS_TARGET
