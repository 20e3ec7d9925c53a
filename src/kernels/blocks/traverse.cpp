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

// Traverses rows in blocks, which are packed and unpacked as operands need it.
class BlockTraversal {
 public:
  BlockTraversal(const Rows& rows, const Traversal& t, Packer& packer)
      : rows_(rows), t_(t), packer_(packer), constant_(constant_operand(rows, t)) {
    choose_packed();
    choose_size();
    choose_repeated();
  }

  void run() {
    const auto for_each_column = [this](const auto& visit) DMLOPS_LAMBDA_INLINE {
      for (std::int64_t column = 0, length = first_length_; column < rows_.length;
           column += length, length = block_length_) {
        length = min(length, rows_.length - column);
        visit(column, length);
      }
    };
    const auto for_each_row = [this](const auto& visit) DMLOPS_LAMBDA_INLINE {
      for (std::int64_t row = 0; row < rows_.count; row += block_count_) visit(row);
    };
    if (by_columns_) {
      for_each_column([&](std::int64_t column, std::int64_t length) DMLOPS_LAMBDA_INLINE {
        for_each_row([&](std::int64_t row) DMLOPS_LAMBDA_INLINE { visit(row, column, length); });
      });
    } else {
      for_each_row([&](std::int64_t row) DMLOPS_LAMBDA_INLINE {
        for_each_column([&](std::int64_t column, std::int64_t length)
                            DMLOPS_LAMBDA_INLINE { visit(row, column, length); });
      });
    }
  }

 private:
  void choose_packed() {
    buffered_ = rows_.streaming || rows_.layout[0] != Layout::in_place;
    bool packs = false;
    for (int i = 0; i < t_.inputs; ++i) {
      packed_[i] = rows_.layout[i + 1] != Layout::in_place && i + 1 != constant_;
      packs = packs || packed_[i];
    }
    // Short rows in place would be transformed one by one.
    const bool merges = t_.elementwise && packs && rows_.length * t_.size < kShortRow &&
                        are_contiguous(rows_, 0, t_.size);
    for (int i = 0; i < t_.inputs && merges; ++i)
      packed_[i] = packed_[i] || (i + 1 != constant_ && !are_contiguous(rows_, i + 1, t_.size));
  }

  void choose_size() {
    const std::int64_t capacity = kBlockBytes / t_.size, line = kLineBytes / t_.size;
    // If rows share the cache lines of an input, a block has enough rows for whole lines.
    block_length_ = min(rows_.length, rows_.by_lines ? capacity / min(rows_.count, 64) : capacity);
    if (rows_.by_lines && block_length_ > line) block_length_ -= block_length_ % line;
    if (t_.shared_columns > 0) block_length_ = min(block_length_, t_.shared_columns);
    block_count_ = min(rows_.count, capacity / block_length_);
    // Non-temporal stores write whole cache lines, so the first block ends at the end of an output
    // line.
    const std::int64_t begun = bytes_past_line(rows_.data[0]) / t_.size;
    const bool aligned = buffered_ && rows_.streaming && block_length_ < rows_.length;
    first_length_ = aligned && block_length_ > begun ? block_length_ - begun : block_length_;
  }

  // Rows are packed once if all are equal, unless results overwrite them. The inner loop iterates
  // over the rows if they have several blocks.
  void choose_repeated() {
    by_columns_ = rows_.by_lines || t_.shared_columns > 0;
    for (int i = 0; i < t_.inputs; ++i) {
      if (!packed_[i] || t_.shared_columns > 0) continue;
      // Short rows are packed next to each other, to be merged.
      if (rows_.length * t_.size >= kShortestEqual)
        equal_[i] = packer_.equal_row(rows_, i + 1, t_.size);
      if (equal_[i] != nullptr || (i == 0 && buffered_)) continue;
      repeats_[i] = broadcasts_row(rows_, i + 1);
      by_columns_ = by_columns_ || (repeats_[i] && block_length_ < rows_.length);
    }
  }

  DMLOPS_INLINE void visit(std::int64_t row, std::int64_t column, std::int64_t length) {
    const std::int64_t size = t_.size, pitch = length * size;
    Block block;
    block.rows = &rows_;
    block.row = row;
    block.column = column;
    block.length = length;
    block.count = min(block_count_, rows_.count - row);
    block.constant = constant_;
    for (int i = 0; i < t_.inputs; ++i) {
      if (!packed_[i]) {
        block.inputs[i] = rows_in_place<const char>(rows_, i + 1, row, column);
      } else if (equal_[i] != nullptr) {
        block.inputs[i] = {equal_[i] + column * size};
      } else {
        if (!repeats_[i] || row == 0)
          packer_.pack_rows(rows_, i + 1, size, row, column, length, block.count, buffers_[i],
                            pitch);
        block.inputs[i] = {buffers_[i], pitch};
      }
    }
    const DenseRows<const char> input = block.inputs[0];
    block.output = buffered_ ? DenseRows<char>{buffers_[0], pitch}
                             : rows_in_place<char>(rows_, 0, row, column);
    const std::int64_t count = block.count;
    if (t_.elementwise) merge_rows(block, t_, size);
    t_.transforms.dense(block, t_.context);
    if (!buffered_) return;
    const bool contiguous = length == rows_.length && rows_.layout[0] == Layout::in_place &&
                            are_contiguous(rows_, 0, size);
    const std::int64_t together = contiguous ? count : 1;
    for (std::int64_t r = 0; r < count; r += together)
      write(rows_, size, row + r, column, length * together, buffers_[0] + r * pitch,
            packed_[0] ? nullptr : input[r] + kBlockAhead);
  }

  const Rows& rows_;
  const Traversal& t_;
  Packer& packer_;
  const int constant_;  // the operand with one element for each row, or 0
  bool buffered_;       // true if results are written by way of a buffer
  bool by_columns_;     // true if the inner loop iterates over the rows
  bool packed_[kMaxInputs] = {};
  bool repeats_[kMaxInputs] = {};       // true if one row is broadcast to all rows
  const char* equal_[kMaxInputs] = {};  // the row that all rows are equal to, if it is packed
  std::int64_t block_length_, block_count_, first_length_;  // first: of the first block of a row
  alignas(kVectorBytes) char buffers_[kMaxInputs][kBlockBytes + kSpill];
};

// ---- Transposition by squares ------------------------------------------------------------------

constexpr std::int64_t kShortTiles = 4;  // rows of up to so many tiles are written row by row

// Iterates over tiles along the columns, the memory order of a transposed input, or along short
// rows.
template <class U>
class TransposedTraversal {
 public:
  TransposedTraversal(const Rows& rows, const Traversal& t, Packer& packer)
      : rows_(rows), t_(t), packer_(packer), constant_(constant_operand(rows, t)) {
    once_ = rows.streaming;
    for (int k = 1; k < rows.operands; ++k) once_ = once_ || rows.data[k] == rows.data[0];
    choose_first();
  }

  void run() {
    for (Corner corner = first_, next; corner.column < rows_.length && corner.row < rows_.count;
         corner = next) {
      next = after(corner);
      visit(corner, tile_at(next));
    }
  }

 private:
  static constexpr std::int64_t kSize = sizeof(U);
  static constexpr std::int64_t kHeight = kMaxTileRows<U>, kWidth = kTileLines<U> * kSide<U>;
  // Not a power of two, against set conflicts.
  static constexpr std::int64_t kPitch = (kTileLines<U> + 1) * kLineBytes;

  struct Corner {
    std::int64_t column, row;
  };

  // A smaller first tile aligns the others to cache lines.
  void choose_first() {
    const int k = rows_.layout[1] == Layout::transposed ? 1 : 2;
    const bool gathered = rows_.offsets[k] != nullptr;
    first_ = {gathered ? 0 : -past_line(rows_.data[0], rows_.pitch[0], kSize), 0};
    if (rows_.pitch[k] == kSize && (gathered || rows_.count >= 4 * kHeight))
      first_.row = -past_line(rows_.data[k], gathered ? 0 : rows_.step[k], kSize);
  }

  // Returns the corner of the next tile.
  Corner after(Corner corner) const {
    // Short rows are written as a whole, since their cache lines span tiles.
    if (rows_.length <= kShortTiles * kWidth) {
      corner.column += kWidth;
      return corner.column < rows_.length ? corner : Corner{first_.column, corner.row + kHeight};
    }
    corner.row += kHeight;
    return corner.row < rows_.count ? corner : Corner{corner.column + kWidth, first_.row};
  }

  TransposeTile tile_at(Corner from) const {
    return {Span(from.column, kWidth, rows_.length, kSide<U>),
            Span(from.row, kHeight, rows_.count, kSide<U>)};
  }

  // Returns the block of a tile, from the corner on if tiles must not overlap.
  Block block_of(const TransposeTile& tile, Corner corner) const {
    Block block;
    block.rows = &rows_;
    block.row = once_ ? max(corner.row, 0) : tile.rows.begin;
    block.column = once_ ? max(corner.column, 0) : tile.columns.begin;
    block.count = tile.rows.begin + tile.rows.count - block.row;
    block.length = tile.columns.begin + tile.columns.count - block.column;
    block.constant = constant_;
    return block;
  }

  void prefetch_output(const TransposeTile& tile) const {
    for (std::int64_t r = 0; r < tile.rows.count; ++r)
      prefetch_lines<2>(row_of(rows_, 0, tile.rows.begin + r) + tile.columns.begin * kSize,
                        tile.columns.count * kSize);
  }

  // Returns the rows of input i in a block that is `skipped` bytes past the begin of its tile.
  DenseRows<const char> input(int i, const Block& block, std::int64_t skipped,
                              const TransposeTile& tile, const TransposeTile& next) {
    const int k = i + 1;
    char* const packed = buffers_[i] + skipped;
    if (rows_.layout[k] == Layout::in_place || k == constant_)
      return rows_in_place<const char>(rows_, k, block.row, block.column);
    if (rows_.layout[k] == Layout::transposed) {
      transpose_tile<U>(buffers_[i], kPitch, rows_, k, tile, next);
    } else {
      const char* const equal = packer_.equal_row(rows_, k, kSize);
      if (equal != nullptr) return {equal + block.column * kSize};
      packer_.pack_rows(rows_, k, kSize, block.row, block.column, block.length, block.count, packed,
                        kPitch);
    }
    return {packed, kPitch};
  }

  void visit(Corner corner, const TransposeTile& next) {
    const TransposeTile tile = tile_at(corner);
    if (prefetches_) prefetch_output(tile);
    Block block = block_of(tile, corner);
    const std::int64_t skipped =
        (block.row - tile.rows.begin) * kPitch + (block.column - tile.columns.begin) * kSize;
    for (int i = 0; i < t_.inputs; ++i) block.inputs[i] = input(i, block, skipped, tile, next);
    // Two inputs of a tile would take longer with non-temporal stores of short rows.
    if (!rows_.streaming || (t_.transforms.streaming != nullptr && t_.inputs == 1)) {
      block.output = rows_in_place<char>(rows_, 0, block.row, block.column);
      return (rows_.streaming ? t_.transforms.streaming : t_.transforms.dense)(block, t_.context);
    }
    char* const results = buffers_[0] + skipped;
    block.output = {results, kPitch};
    t_.transforms.dense(block, t_.context);
    for (std::int64_t r = 0; r < block.count; ++r)
      write(rows_, kSize, block.row + r, block.column, block.length, results + r * kPitch);
  }

  const Rows& rows_;
  const Traversal& t_;
  Packer& packer_;
  const int constant_;  // the operand with one element for each row, or 0
  const bool prefetches_ =
      !rows_.streaming && rows_.length * rows_.count * kSize >= kUnlikelyCached;
  // Tiles overlap unless each cache line must be written once, or an input that shares the output's
  // memory must be read before it is overwritten.
  bool once_;
  Corner first_;
  alignas(kLineBytes) char buffers_[kMaxInputs][kHeight * kPitch];
};

// Not inlined, so that other traversals do not have its buffers on the stack.
template <class U>
DMLOPS_NO_INLINE void traverse_transposed(const Rows& rows, const Traversal& t, Packer& packer) {
  TransposedTraversal<U>(rows, t, packer).run();
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
  BlockTraversal(rows, t, packer).run();
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
