// Chooses rows, their offset tables, and the order of the outer loops.
#include "traversal/layout.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/pool.hpp"
#include "traversal/policy.hpp"
#include "traversal/shortest_row.hpp"

namespace dmlops {
namespace {

constexpr std::int64_t kFewestColumns = 8;   // contiguous elements from which transposing pays off
constexpr std::int64_t kSmallestTile = 256;  // elements, likewise
constexpr std::int64_t kLongRun = 64;        // bytes of a strided run that is packed by itself
constexpr std::int64_t kShort = 32;  // shorter rows and columns are extended by an offset table

// Returns the largest step of a transposed operand's columns, in bytes.
std::int64_t largest_step(std::int64_t size) { return std::min<std::int64_t>(4 * size, 16); }

// The largest power of two up to n.
std::int64_t power_of_two_up_to(std::int64_t n) {
  std::int64_t power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

}  // namespace

LoopLayout::LoopLayout(const Nest& nest, char* const* data, bool streaming) : nest_(nest) {
  rows_.operands = nest.operands;
  rows_.streaming = streaming;
  std::copy_n(data, nest.operands, rows_.data);
  if (!choose_transposition()) choose_row();
  rows_.length = row_.length;
  for (int k = 0; k < nest.operands; ++k) set_operand(k);
  choose_outer_loops();
}

// Extends a chain by a dimension that continues it in the operand, in reverse order if its stride
// is negative. A dimension that exceeds an offset table is split into chunks if the chain is short.
bool LoopLayout::extend(Chain& chain, int operand) {
  if (chain.chunk != 0) return false;
  for (int d = 0; d < nest_.rank; ++d) {
    const std::int64_t stride = nest_.strides[operand][d];
    if (taken_[d] || std::llabs(stride) != chain.length * chain.step) continue;
    std::int64_t size = nest_.sizes[d];
    if (chain.rank > 0 && chain.length * size > kTable) {
      if (chain.length >= kShort || row_.chunk != 0 || column_.chunk != 0) continue;
      const std::int64_t chunks = (chain.length * size + kTable - 1) / kTable;
      size = chain.chunk = std::min((size + chunks - 1) / chunks, kTable / chain.length);
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

// True if the output is dense along dimensions other than an input of a formula.
bool LoopLayout::choose_transposition() {
  if (nest_.operands > 3 || nest_.rank < 2 || nest_.strides[0][0] != nest_.element_size)
    return false;
  // A small input that repeats is computed once, as a row.
  const std::int64_t distinct = distinct_elements(nest_, 1);
  if (nest_.operands == 2 && distinct <= row_capacity() && distinct < element_count(nest_))
    return false;
  for (int k = 1; k < nest_.operands; ++k) {
    if (transpose(k)) return true;
  }
  return false;
}

// Chooses dimensions contiguous in the output as rows, and those contiguous in the operand as
// columns, if they differ. Both should be long enough for whole cache lines, so the shorter one is
// extended first.
bool LoopLayout::transpose(int operand) {
  row_.step = nest_.element_size;
  column_.step = largest_step(nest_.element_size);
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
    // Short rows of the output are written together if they are contiguous.
    const bool is_dense = column_.step == nest_.element_size &&
                          common_steps(column_, 0) == column_.rank &&
                          stride(0, column_.dimensions[0]) == row_.length * nest_.element_size;
    const bool is_whole = row_.rank + column_.rank == nest_.rank;
    if (column_.length >= kFewestColumns && (is_dense || row_.length >= kFewestColumns) &&
        (is_whole || column_.length * row_.length >= kSmallestTile)) {
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
  row_.rank = 1;
  row_.dimensions[0] = 0;
  row_.length = nest_.sizes[0];
  taken_[0] = true;
  if (row_.length >= shortest_row(nest_, kTable)) return;
  for (int d = 1; d < nest_.rank; ++d) {
    std::int64_t chunk = std::min(nest_.sizes[d], row_capacity() / row_.length);
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

// Returns the offsets of a chain in an operand, over its dimensions from `first` on. Each dimension
// repeats the offsets of the inner ones.
const std::int64_t* LoopLayout::offset_table(const Chain& chain, int operand, int first) {
  std::int64_t* const offsets = tables_[tables_used_++];
  offsets[0] = 0;
  std::int64_t filled = 1;
  for (int i = first; i < chain.rank; ++i) {
    const int d = chain.dimensions[i];
    const std::int64_t size =
        i == chain.rank - 1 && chain.chunk != 0 ? chain.chunk : nest_.sizes[d];
    const std::int64_t step = stride(operand, d), total = filled * size;
    for (std::int64_t k = filled; k < total; ++k) offsets[k] = offsets[k - filled] + step;
    filled = total;
  }
  return offsets;
}

// Returns the number of the chain's dimensions, the innermost first, with a common step.
int LoopLayout::common_steps(const Chain& chain, int operand) const {
  std::int64_t next = stride(operand, chain.dimensions[0]);
  int i = 0;
  for (; i < chain.rank && stride(operand, chain.dimensions[i]) == next; ++i)
    next *= nest_.sizes[chain.dimensions[i]];
  return i;
}

// True if rows a stride apart share cache lines, whose elements a transposition uses together.
bool LoopLayout::is_across(std::int64_t stride, std::int64_t step) const {
  return stride > 0 && stride <= largest_step(nest_.element_size) && stride < std::llabs(step);
}

void LoopLayout::set_operand(int k) {
  const std::int64_t size = nest_.element_size, step = stride(k, row_.dimensions[0]);
  bool across = false;  // contiguous along the columns
  if (column_.rank > 0) {
    const bool common = common_steps(column_, k) == column_.rank;
    across = common && is_across(stride(k, column_.dimensions[0]), step);
    if (!common) main_.row_offsets[k] = offset_table(column_, k, 0);
  }
  rows_.step[k] = step;
  rows_.offsets[k] = nullptr;
  const int in_run = common_steps(row_, k);
  if (in_run < row_.rank) {
    std::int64_t run = 1;
    for (int i = 0; i < in_run; ++i) run *= nest_.sizes[row_.dimensions[i]];
    // Runs are packed as runs if they are contiguous, broadcast or long. The elements of other
    // runs, and of transposed operands, are gathered one by one.
    const bool simple =
        step == size || (k != 0 && (step == 0 || run >= kShort || run * size > kLongRun));
    const bool by_run = simple && !across;
    rows_.offsets[k] = offset_table(row_, k, by_run ? in_run : 0);
    rows_.run[k] = by_run ? run : 1;
    rows_.run_step[k] = by_run && in_run + 1 == row_.rank ? stride(k, row_.dimensions[in_run]) : 0;
    rows_.layout[k] = Layout::gathered;
  } else if (step == size || row_.length == 1) {
    rows_.layout[k] = Layout::in_place;
  } else {
    rows_.layout[k] = step == 0 ? Layout::broadcast : Layout::strided;
  }
}

// Returns the time to pack an element of each operand, as bytes of memory traffic.
std::int64_t LoopLayout::packing_work() const {
  std::int64_t work = 0;
  for (int k = 0; k < nest_.operands; ++k) {
    const Layout layout = layout_of(k, main_);
    if (layout == Layout::in_place || layout == Layout::broadcast) continue;
    const bool one_by_one =
        layout == Layout::gathered
            ? rows_.run[k] == 1
            : layout == Layout::strided && std::llabs(rows_.step[k]) > 4 * nest_.element_size;
    work += one_by_one ? 32 : 8;
  }
  return work;
}

// Returns the index of the dimension that counts rows.
int LoopLayout::row_counter(const int* dimensions, int count) const {
  const auto index_of_min = [&](const auto& key) {
    return static_cast<int>(std::min_element(dimensions, dimensions + count,
                                             [&](int a, int b) { return key(a) < key(b); }) -
                            dimensions);
  };
  // Each block has a fixed cost.
  const auto are_few = [this](int d) {
    return nest_.sizes[d] * rows_.length * nest_.element_size < kBlockBytes / 2;
  };
  // Rows of a broadcast input are computed once.
  if (nest_.operands == 2) {
    for (int i = 0; i < count; ++i) {
      if (nest_.strides[1][dimensions[i]] != 0 || are_few(dimensions[i])) continue;
      if (i == 0 || rows_.layout[1] != Layout::in_place) return i;
    }
  }
  // Rows that share cache lines of an input belong to one block.
  for (int k = 1; k < (nest_.operands == 3 ? 3 : 2); ++k) {
    if (rows_.layout[k] != Layout::strided && rows_.layout[k] != Layout::gathered) continue;
    const auto distance = [&](int d) {
      const std::int64_t stride = std::llabs(nest_.strides[k][d]);
      return stride == 0 ? INT64_MAX : stride;
    };
    const int i = index_of_min(distance);
    const std::int64_t stride = distance(dimensions[i]);
    if (stride <= kLineBytes / 2 && stride < std::llabs(rows_.step[k]) && !are_few(dimensions[i]))
      return i;
  }
  // Rows with the same parameters, or for which an input is packed once, belong to one block.
  const auto is_shared = [&](int k, int d) { return nest_.strides[k][d] == 0; };
  const auto is_parameter = [&](int k) {
    const Layout layout = rows_.layout[k];
    if (nest_.operands > 3) return k > 1 && layout != Layout::broadcast;
    return nest_.operands == 3 && (layout == Layout::strided || layout == Layout::gathered) &&
           std::any_of(dimensions, dimensions + count, [&](int d) { return is_shared(k, d); });
  };
  bool varies = false;
  for (int k = 1; k < nest_.operands; ++k) varies = varies || is_parameter(k);
  if (varies) {
    const auto shared = [&](int d) {
      for (int k = 1; k < nest_.operands; ++k) {
        if (is_parameter(k) && !is_shared(k, d)) return std::int64_t{0};
      }
      return -nest_.sizes[d];
    };
    return index_of_min(shared);
  }
  // Blocks need several rows.
  constexpr std::int64_t kFewRows = 16;
  const bool in_place = rows_.layout[1] == Layout::in_place;
  if (nest_.sizes[dimensions[0]] >= kFewRows || (in_place && !are_few(dimensions[0]))) return 0;
  return index_of_min([&](int d) { return -nest_.sizes[d]; });
}

void LoopLayout::choose_outer_loops() {
  int dimensions[kMaxRank], count = 0;
  const Chain& split = column_.chunk != 0 ? column_ : row_;
  const int chunked = split.chunk != 0 ? split.dimensions[split.rank - 1] : -1;
  for (int d = 0; d < nest_.rank; ++d) {
    if (!taken_[d] || d == chunked) dimensions[count++] = d;
  }
  rows_.count = 1;
  for (int k = 0; k < nest_.operands; ++k) rows_.pitch[k] = 0;
  if (column_.rank == 0 && count > 1) {
    const int first = row_counter(dimensions, count);
    std::rotate(dimensions, dimensions + first, dimensions + first + 1);
  }
  const auto add = [this](LoopNest& loop_nest, int d, std::int64_t size, std::int64_t chunk) {
    Loop& loop = loop_nest.loops[loop_nest.rank++];
    loop.size = size;
    for (int k = 0; k < nest_.operands; ++k) loop.strides[k] = stride(k, d) * chunk;
  };
  if (column_.rank > 0) {
    add(main_, column_.dimensions[0], column_.length, 1);
    for (int k = 0; k < nest_.operands; ++k) {
      if (main_.row_offsets[k] != nullptr) main_.loops[0].strides[k] = 0;
    }
    tail_ = main_;
  }
  for (int i = 0; i < count; ++i) {
    const int d = dimensions[i];
    if (d == chunked) {
      add(main_, d, nest_.sizes[d] / split.chunk, split.chunk);
    } else {
      add(main_, d, nest_.sizes[d], 1);
      add(tail_, d, nest_.sizes[d], 1);
    }
  }
  main_.operands = tail_.operands = nest_.operands;
  main_.length = tail_.length = row_.length;
  std::copy_n(rows_.step, nest_.operands, main_.step);
  std::copy_n(rows_.step, nest_.operands, tail_.step);
  // Elements of gathered rows have no common step. Parts of an aligned row share no cache line.
  main_.unit = tail_.unit = has_common_steps() ? kLineBytes / nest_.element_size : kTable;
  std::copy_n(rows_.data, nest_.operands, main_.data);
  std::copy_n(rows_.data, nest_.operands, tail_.data);
  const std::int64_t remainder = chunked < 0 ? 0 : nest_.sizes[chunked] % split.chunk;
  if (remainder == 0) {
    tail_.length = 0;
    return;
  }
  std::int64_t& shortened = &split == &row_ ? tail_.length : tail_.loops[0].size;
  shortened = shortened / split.chunk * remainder;
  const std::int64_t done = nest_.sizes[chunked] - remainder;
  for (int k = 0; k < nest_.operands; ++k) tail_.data[k] += done * stride(k, chunked);
}

// Returns the access pattern of an operand. An input is transposed if it is packed and contiguous
// across the rows.
Layout LoopLayout::layout_of(int k, const LoopNest& loop_nest) const {
  const Layout layout = rows_.layout[k];
  const bool packed = layout == Layout::strided || layout == Layout::gathered;
  if (k == 0 || !packed || has_runs(0) || has_runs(k)) return layout;
  if (loop_nest.rank == 0 || loop_nest.loops[0].size == 1) return layout;
  return is_across(loop_nest.loops[0].strides[k], rows_.step[k]) ? Layout::transposed : layout;
}

bool LoopLayout::has_common_steps() const {
  return std::all_of(rows_.offsets, rows_.offsets + nest_.operands,
                     [](const std::int64_t* offsets) { return offsets == nullptr; });
}

bool LoopLayout::has_runs(int k) const { return rows_.offsets[k] != nullptr && rows_.run[k] > 1; }

void LoopLayout::run_rows(Rows rows, const LoopNest& loop_nest, RowKernel kernel,
                          const void* parameters) const {
  rows.length = loop_nest.length;
  std::copy_n(loop_nest.data, nest_.operands, rows.data);
  if (loop_nest.rank > 0) {
    rows.count = loop_nest.loops[0].size;
    std::copy_n(loop_nest.row_offsets, nest_.operands, rows.row_offsets);
    for (int k = 0; k < nest_.operands; ++k) rows.pitch[k] = loop_nest.loops[0].strides[k];
    rows.outer_rank = loop_nest.rank - 1;
    rows.outer = loop_nest.loops + 1;
  }
  kernel(rows, parameters);
}

void LoopLayout::run_shard(const LoopNest& loop_nest, const Split& split, std::int64_t i,
                           RowKernel kernel, const void* parameters) const {
  if (i >= split.shards) return;
  Rows rows = rows_;
  for (int k = 1; k < nest_.operands; ++k) rows.layout[k] = layout_of(k, loop_nest);
  if (split.shards == 1) return run_rows(rows, loop_nest, kernel, parameters);
  for_each_box_of_shard(loop_nest, split, i,
                        [&](const LoopNest& box) { run_rows(rows, box, kernel, parameters); });
}

void LoopLayout::run(std::int64_t shards, RowKernel kernel, const void* parameters) const {
  Split main, tail;
  if (shards > 1) {
    main = choose_split(main_, shards, get_num_threads());
    if (tail_.length > 0) tail = choose_split(tail_, main.shards, main.shards);
  }
  parallel_for(static_cast<int>(main.shards), [&](int i) {
    run_shard(main_, main, i, kernel, parameters);
    if (tail_.length > 0) run_shard(tail_, tail, i, kernel, parameters);
  });
}

}  // namespace dmlops
