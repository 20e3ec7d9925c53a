// Chooses the dimensions of the rows and the columns of a layout.
#include <algorithm>
#include <cstdlib>

#include "traversal/layout.hpp"
#include "traversal/shortest_row.hpp"

namespace dmlops {
namespace {

// Elements from which transposing pays off: contiguous ones, those of rows with further inputs, and
// those of a tile.
constexpr std::int64_t kFewestColumns = 8, kFewestNormalized = 16, kSmallestTile = 256;
constexpr std::int64_t kManyLines = 256;        // half of L1
constexpr std::int64_t kShortestRepeated = 32;  // bytes of rows that repeat many times
// Bytes of an output from which its rows are counted in the order of memory: of several rows near
// each other, beyond L2; of few, which have more overhead, likely beyond all caches.
constexpr std::int64_t kBeyondL2 = 1 << 20, kBeyondCaches = 16 << 20;
constexpr std::int64_t kConstantRow = 16, kSharedRow = 192, kContiguousRow = 64;  // elements

// Returns the size of nearly equal chunks of a dimension, of up to `largest` indices each.
std::int64_t even_chunk(std::int64_t size, std::int64_t largest) {
  return ceil_div(size, ceil_div(size, largest));
}

// The largest power of two up to n.
std::int64_t power_of_two_up_to(std::int64_t n) {
  std::int64_t power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

// Returns the index below `count` with the smallest key, the first of several.
template <class Key>
int index_of_min(int count, const Key& key) {
  int index = 0;
  for (int i = 1; i < count; ++i) {
    if (key(i) < key(index)) index = i;
  }
  return index;
}

}  // namespace

// Extends a chain by a dimension that continues it in the operand, in reverse order if its stride
// is negative. A dimension that exceeds an offset table is split into chunks if the chain is short.
bool LoopLayout::extend(Chain& chain, int operand) {
  if (chain.chunk != 0) return false;
  // Each of many operands may have two tables.
  const std::int64_t table = has_parameters() ? kTable / 2 : kTable;
  for (int d = 0; d < nest_.rank; ++d) {
    const std::int64_t stride = nest_.strides[operand][d];
    if (taken_[d] || std::llabs(stride) != chain.length * chain.step) continue;
    std::int64_t size = nest_.sizes[d];
    if (chain.rank > 0 && chain.length * size > table) {
      if (chain.length >= kShort || row_.chunk != 0 || column_.chunk != 0) continue;
      size = chain.chunk = even_chunk(size, table / chain.length);
    }
    taken_[d] = true;
    reversed_[d] = stride < 0;
    chain.dimensions[chain.rank++] = d;
    chain.length *= size;
    return true;
  }
  return false;
}

// Returns the most elements of a row that is extended by an offset table.
std::int64_t LoopLayout::row_capacity() const {
  return std::min(kTable, kBlockBytes / nest_.element_size);
}

// Returns the indices of a dimension by which a row is extended, at most `largest`. Contiguous rows
// with the same varying parameters are extended only to a multiple of 16 elements, for aligned
// parameters: their vectors extend into the next row, and packing the parameters of long rows takes
// time.
std::int64_t LoopLayout::row_chunk(int d, std::int64_t largest) const {
  const std::int64_t bytes = row_.length * nest_.element_size;
  const auto varies = [this](int row) { return !has_constant_parameters(nest_, row); };
  if (!has_parameters() || varies(d) ||
      std::none_of(row_.dimensions, row_.dimensions + row_.rank, varies))
    return largest;
  for (int k = 0; k < 2; ++k) {
    if (nest_.strides[k][0] != nest_.element_size || nest_.strides[k][d] != bytes) return largest;
  }
  std::int64_t chunk = 1;
  while (row_.length * chunk < kContiguousRow) chunk *= 2;
  for (std::int64_t whole = chunk; whole <= largest; whole *= 2) {
    if (row_.length * whole % 16 == 0) return whole;
  }
  return std::min(chunk, largest);
}

// True if the output is dense along dimensions other than an input that kernels get as dense rows.
bool LoopLayout::choose_transposition() {
  if (nest_.rank < 2 || nest_.strides[0][0] != nest_.element_size) return false;
  // A small input that repeats is computed once, as a row.
  const std::int64_t distinct = distinct_elements(nest_, 1);
  if (nest_.operands == 2 && distinct <= row_capacity() && distinct < element_count(nest_))
    return false;
  for (int k = 1; k < dense_end(); ++k) {
    if (transpose(k)) return true;
  }
  return false;
}

// Chooses dimensions contiguous in the output as rows, and those contiguous in the operand as
// columns, if they differ. Both should be long enough for whole cache lines, so the shorter one is
// extended first.
bool LoopLayout::transpose(int operand) {
  row_.step = nest_.element_size;
  column_.step = largest_step();
  for (int d = 0; d < nest_.rank; ++d) {
    const std::int64_t distance = std::llabs(nest_.strides[operand][d]);
    if (distance != 0) column_.step = std::min(column_.step, distance);
  }
  if (std::llabs(nest_.strides[operand][0]) <= column_.step) return false;
  if (extend(column_, operand) && extend(row_, 0)) {
    const auto can_grow = [](const Chain& chain) {
      return chain.rank > 1 || chain.length < kShort;
    };
    const auto grow_row = [&] { return can_grow(row_) && extend(row_, 0); };
    const auto grow_column = [&] { return can_grow(column_) && extend(column_, operand); };
    while (row_.length < kShort && grow_row()) continue;
    while (column_.length <= row_.length ? grow_column() || grow_row()
                                         : grow_row() || grow_column()) {
    }
    // Short rows of the output are written together if they are contiguous, unless parameters
    // differ between them.
    const bool is_dense = !has_parameters() && column_.step == nest_.element_size &&
                          common_steps(column_, 0) == column_.rank &&
                          stride(0, column_.dimensions[0]) == row_.length * nest_.element_size;
    const bool covers_nest = row_.rank + column_.rank == nest_.rank;
    const std::int64_t shortest = has_parameters() ? kFewestNormalized : kFewestColumns;
    if (column_.length >= kFewestColumns && (is_dense || row_.length >= shortest) &&
        (covers_nest || column_.length * row_.length >= kSmallestTile)) {
      for (int d = 0; d < nest_.rank; ++d) {
        if (!reversed_[d]) continue;
        for (int k = 0; k < nest_.operands; ++k)
          rows_.data[k] += nest_.strides[k][d] * (nest_.sizes[d] - 1);
      }
      return true;
    }
  }
  row_ = column_ = Chain();
  std::fill_n(taken_, nest_.rank, false);
  std::fill_n(reversed_, nest_.rank, false);
  return false;
}

void LoopLayout::choose_row() {
  const int first = row_dimension(nest_);
  row_.rank = 1;
  row_.dimensions[0] = first;
  row_.length = nest_.sizes[first];
  taken_[first] = true;
  if (first != 0 || row_.length >= shortest_row(nest_, kTable)) return;
  const bool begins_constant = has_parameters() && has_constant_parameters(nest_, 0);
  bool constant = begins_constant;
  for (int d = 1; d < nest_.rank; ++d) {
    if (begins_constant && !has_constant_parameters(nest_, d)) {
      // Rows with constant parameters need no factor for each element. Rows that share parameters
      // need few factors, but long ones more than L1 holds.
      bool shared = false;
      for (int outer = d + 1; outer < nest_.rank; ++outer)
        shared = shared || (has_constant_parameters(nest_, outer) && nest_.sizes[outer] >= 4);
      if (shared ? row_.length >= kSharedRow : constant && row_.length >= kConstantRow) return;
      constant = false;
    }
    // Many equal rows are computed once, as rows of a block.
    if (nest_.operands == 2 && nest_.strides[1][d] == 0 && nest_.sizes[d] >= kFewRows &&
        row_.length * nest_.element_size >= kShortestRepeated)
      return;
    std::int64_t chunk = row_chunk(d, std::min(nest_.sizes[d], row_capacity() / row_.length));
    if (chunk < 2) return;
    // Powers of two give most rows the same alignment.
    if (nest_.operands > 2 && chunk < nest_.sizes[d]) chunk = power_of_two_up_to(chunk);
    row_.dimensions[row_.rank++] = d;
    row_.length *= chunk;
    taken_[d] = true;
    if (chunk == nest_.sizes[d]) continue;
    row_.chunk = chunk;
    return;
  }
}

// Returns the indices of a dimension for each row that it counts: those of a chunk.
std::int64_t LoopLayout::chunk_of(int d) const {
  return d == chunked_dimension() ? split_chain().chunk : 1;
}

// True if a dimension counts so few rows that the fixed cost of blocks matters.
bool LoopLayout::counts_few(int d) const {
  return nest_.sizes[d] / chunk_of(d) * rows_.length * nest_.element_size < kBlockBytes / 2;
}

// Returns the index of the dimension that counts rows.
int LoopLayout::row_counter(const int* dimensions, int count) const {
  if (const int i = broadcast_counter(dimensions, count); i >= 0) return i;
  if (const int i = line_sharing_counter(dimensions, count); i >= 0) return i;
  // Rows of several dimensions fill a block. Otherwise, the more rows the better.
  const auto rows_of = [&](int i) {
    const int d = dimensions[i];
    return joined_rows(dimensions, count, i).rank > 1 ? INT64_MAX : nest_.sizes[d] / chunk_of(d);
  };
  const auto most_rows = [&](int i) { return -rows_of(i); };
  const bool in_place = rows_.layout[1] == Layout::in_place;
  // Rows with the same parameters, or for which an input is packed once, belong to one block.
  bool shared[kMaxOperands], any = false;
  for (int k = 1; k < nest_.operands; ++k) {
    shared[k] = is_shared_by_rows(k, dimensions, count);
    any = any || shared[k];
  }
  if (any) {
    return index_of_min(count, [&](int i) {
      for (int k = 1; k < nest_.operands; ++k) {
        if (shared[k] && nest_.strides[k][dimensions[i]] != 0) return std::int64_t{0};
      }
      // Packed parameters are kept from block to block, so the nearest rows in place will do.
      const bool suffices = has_parameters() && in_place && !counts_few(dimensions[i]);
      return suffices ? -INT64_MAX : most_rows(i);
    });
  }
  const int nearest = dimensions[0];
  const std::int64_t rows = nest_.sizes[nearest] / chunk_of(nearest);
  if (rows >= kFewRows || (in_place && !counts_few(nearest))) return 0;
  // Beyond the caches, rows that nothing packs are read in the order of memory.
  const std::int64_t large = rows >= 4 ? kBeyondL2 : kBeyondCaches;
  const bool is_packed = std::any_of(rows_.layout, rows_.layout + nest_.operands,
                                     [](Layout layout) { return layout != Layout::in_place; });
  if (!is_packed && element_count(nest_) * nest_.element_size >= large) return 0;
  return index_of_min(count, most_rows);
}

// Returns the index of a dimension along which the only input is broadcast, whose rows are computed
// once, or -1.
int LoopLayout::broadcast_counter(const int* dimensions, int count) const {
  for (int i = 0; i < count && nest_.operands == 2; ++i) {
    if (nest_.strides[1][dimensions[i]] != 0 || counts_few(dimensions[i])) continue;
    if (i == 0 || rows_.layout[1] != Layout::in_place) return i;
  }
  return -1;
}

// Returns the index of a dimension whose rows share cache lines of an input, and so belong to one
// block, or -1.
int LoopLayout::line_sharing_counter(const int* dimensions, int count) const {
  for (int k = 1; k < dense_end(); ++k) {
    if (rows_.layout[k] != Layout::strided && rows_.layout[k] != Layout::gathered) continue;
    const auto distance = [&](int i) {
      const int d = dimensions[i];
      const std::int64_t stride = std::llabs(nest_.strides[k][d]) * chunk_of(d);
      return stride == 0 ? INT64_MAX : stride;
    };
    const int i = index_of_min(count, distance);
    const std::int64_t stride = distance(i);
    if (stride <= kLineBytes / 2 && stride < std::llabs(rows_.step[k]) &&
        !counts_few(dimensions[i]))
      return i;
  }
  return -1;
}

// True if several rows may have the same row of an operand, which is packed or a parameter.
bool LoopLayout::is_shared_by_rows(int k, const int* dimensions, int count) const {
  const Layout layout = rows_.layout[k];
  if (has_parameters()) return k > 1 && layout != Layout::broadcast;
  if (nest_.operands < 3 || (layout != Layout::strided && layout != Layout::gathered)) return false;
  return std::any_of(dimensions, dimensions + count,
                     [&](int d) { return nest_.strides[k][d] == 0; });
}

// True if an input is transposed along a dimension, and its rows have an element in each cache
// line.
bool LoopLayout::transposes(int d) const {
  for (int k = 1; k < dense_end(); ++k) {
    if (is_transposed(k, stride(k, d)) && std::llabs(rows_.step[k]) >= kLineBytes) return true;
  }
  return false;
}

// True if rows `distance` bytes apart share cache lines of an operand: each line has an element of
// a row, and a row's lines are too many for L1.
bool LoopLayout::shares_lines(int k, std::int64_t distance) const {
  return row_.length >= kManyLines && !has_runs(0) && rows_.layout[k] == Layout::strided &&
         distance != 0 && std::llabs(distance) < kLineBytes &&
         std::llabs(rows_.step[k]) >= kLineBytes;
}

// True if rows along the dimension share cache lines of an input.
bool LoopLayout::rows_share_lines(int d) const {
  for (int k = 1; k < dense_end(); ++k) {
    if (shares_lines(k, nest_.strides[k][d])) return true;
  }
  return false;
}

// True if the output or an input of the formula is not dense along the rows.
bool LoopLayout::packs() const {
  return std::any_of(rows_.layout, rows_.layout + dense_end(),
                     [](Layout layout) { return layout != Layout::in_place; });
}

// True if the same inputs are broadcast along both dimensions.
bool LoopLayout::broadcast_alike(int a, int b) const {
  for (int k = 1; k < nest_.operands; ++k) {
    if ((nest_.strides[k][a] == 0) != (nest_.strides[k][b] == 0)) return false;
  }
  return true;
}

// Returns the packed rows of several dimensions, the first of which has too few for a block, or
// which share cache lines; a chain of one dimension if rows are not joined.
LoopLayout::Chain LoopLayout::joined_rows(const int* dimensions, int count, int first) const {
  const int d = dimensions[first];
  // Contiguous columns of 4 and more elements are transposed by vectors.
  const bool by_vectors = nest_.strides[1][d] == nest_.element_size && nest_.sizes[d] >= 4;
  const bool shared = rows_share_lines(d) && !by_vectors;
  const std::int64_t wanted =
      shared ? kRowTable : std::min(kRowTable, kBlockBytes / (row_.length * nest_.element_size));
  Chain single, rows;
  single.dimensions[single.rank++] = d;
  single.length = nest_.sizes[d];
  if (row_.chunk != 0 || !packs() || single.length > wanted / 2 || (!shared && transposes(d)))
    return single;
  rows = single;
  for (int i = 0; i < count && rows.chunk == 0 && rows.length < wanted; ++i) {
    if (i == first || !broadcast_alike(d, dimensions[i])) continue;
    if (shared && !rows_share_lines(dimensions[i])) continue;
    const std::int64_t size = nest_.sizes[dimensions[i]];
    const std::int64_t chunk = even_chunk(size, kRowTable / rows.length);
    if (chunk < 2) break;
    rows.dimensions[rows.rank++] = dimensions[i];
    rows.length *= chunk;
    if (chunk < size) rows.chunk = chunk;
  }
  return shared || rows.length >= std::min(kFewRows, wanted / 2) ? rows : single;
}

}  // namespace dmlops
