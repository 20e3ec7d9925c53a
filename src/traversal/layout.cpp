// Chooses rows, their offset tables, and the order of the outer loops.
#include "traversal/layout.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/pool.hpp"
#include "traversal/policy.hpp"
#include "traversal/shortest_row.hpp"

namespace dmlops {
namespace {

constexpr std::int64_t kFewestColumns = 8;  // contiguous elements from which transposing pays off
constexpr std::int64_t kLongRun = 64;       // bytes of a strided run that is packed by itself
constexpr std::int64_t kShort = 32;  // shorter rows and columns are extended by an offset table

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

// Extends a chain by a whole dimension that continues it contiguously in the operand.
bool LoopLayout::extend(Chain& chain, int operand) {
  for (int d = 0; d < nest_.rank; ++d) {
    if (taken_[d] || nest_.strides[operand][d] != chain.length * nest_.element_size) continue;
    if (chain.rank > 0 && chain.length * nest_.sizes[d] > kTable) continue;
    taken_[d] = true;
    chain.dimensions[chain.rank++] = d;
    chain.length *= nest_.sizes[d];
    return true;
  }
  return false;
}

// True if the output is dense along dimensions other than the input: both should be long enough for
// whole cache lines, so the shorter one is extended first.
bool LoopLayout::choose_transposition() {
  const std::int64_t size = nest_.element_size, step = nest_.strides[1][0];
  if (nest_.operands != 2 || nest_.rank < 2 || nest_.strides[0][0] != size) return false;
  if (step == 0 || std::llabs(step) == size) return false;
  if (extend(column_, 1) && extend(row_, 0)) {
    const auto can_grow = [](const Chain& chain) {
      return chain.rank > 1 || chain.length < kShort;
    };
    const auto grow = [&](Chain& chain, int operand) {
      return can_grow(chain) && extend(chain, operand);
    };
    while (row_.length < kShort && grow(row_, 0)) continue;
    while (column_.length <= row_.length ? grow(column_, 1) || grow(row_, 0)
                                         : grow(row_, 0) || grow(column_, 1)) {
    }
    if (column_.length >= kFewestColumns) return true;
  }
  row_ = column_ = Chain();
  std::fill_n(taken_, nest_.rank, false);
  return false;
}

void LoopLayout::choose_row() {
  const std::int64_t size = nest_.element_size;
  row_.rank = 1;
  row_.dimensions[0] = 0;
  row_.length = nest_.sizes[0];
  taken_[0] = true;
  if (row_.length >= shortest_row(nest_, kTable)) return;
  const std::int64_t capacity = std::min(kTable, kBlockBytes / size);
  for (int d = 1; d < nest_.rank; ++d) {
    std::int64_t chunk = std::min(nest_.sizes[d], capacity / row_.length);
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

// Fills the offset table of a chain in an operand, over its dimensions from `first` on. Each
// dimension repeats the offsets of the inner ones.
void LoopLayout::fill(std::int64_t* offsets, const Chain& chain, int operand, int first) const {
  offsets[0] = 0;
  std::int64_t filled = 1;
  for (int i = first; i < chain.rank; ++i) {
    const int d = chain.dimensions[i];
    const std::int64_t size =
        i == chain.rank - 1 && chain.chunk != 0 ? chain.chunk : nest_.sizes[d];
    const std::int64_t stride = nest_.strides[operand][d];
    const std::int64_t total = filled * size;
    for (std::int64_t k = filled; k < total; ++k) offsets[k] = offsets[k - filled] + stride;
    filled = total;
  }
}

void LoopLayout::set_operand(int k) {
  const std::int64_t size = nest_.element_size;
  const std::int64_t step = nest_.strides[k][row_.dimensions[0]];
  std::int64_t run = nest_.sizes[row_.dimensions[0]];
  int in_run = 1;  // dimensions with a common step
  for (; in_run < row_.rank; ++in_run) {
    const int d = row_.dimensions[in_run];
    if (nest_.strides[k][d] != step * run) break;
    run *= nest_.sizes[d];
  }
  rows_.step[k] = step;
  rows_.offsets[k] = nullptr;
  if (in_run < row_.rank) {
    // Runs are packed as runs if they are contiguous, broadcast or long. The elements of other
    // runs, and of the columns of a transposition, are gathered one by one.
    const bool simple =
        step == size || (k != 0 && (step == 0 || run >= kShort || run * size > kLongRun));
    const bool by_run = simple && column_.rank == 0;
    fill(tables_[k], row_, k, by_run ? in_run : 0);
    rows_.offsets[k] = tables_[k];
    rows_.run[k] = by_run ? run : 1;
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
    const Layout layout = k == 1 ? input_layout(main_) : rows_.layout[k];
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
  // Rows that share cache lines of the input belong to one block.
  const auto input_stride = [&](int d) {
    const std::int64_t stride = std::llabs(nest_.strides[1][d]);
    return stride == 0 ? INT64_MAX : stride;
  };
  if (rows_.layout[1] == Layout::strided || rows_.layout[1] == Layout::gathered) {
    const int i = index_of_min(input_stride);
    const std::int64_t stride = input_stride(dimensions[i]);
    if (stride <= kLineBytes / 2 && stride < std::llabs(rows_.step[1]) && !are_few(dimensions[i]))
      return i;
  }
  // Rows with the same parameters belong to one block.
  bool varies = false;
  for (int k = 2; k < nest_.operands; ++k) varies = varies || rows_.layout[k] != Layout::broadcast;
  if (varies) {
    const auto shared = [&](int d) {
      for (int k = 2; k < nest_.operands; ++k) {
        if (nest_.strides[k][d] != 0) return std::int64_t{0};
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
  const int chunked = row_.chunk != 0 ? row_.dimensions[row_.rank - 1] : -1;
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
    for (int k = 0; k < nest_.operands; ++k) loop.strides[k] = nest_.strides[k][d] * chunk;
  };
  if (column_.rank > 0) {
    add(main_, column_.dimensions[0], column_.length, 1);
    if (column_.rank > 1) {
      fill(tables_[0], column_, 0, 0);
      main_.row_offsets = tables_[0];
      main_.loops[0].strides[0] = 0;
    }
  }
  for (int i = 0; i < count; ++i) {
    const int d = dimensions[i];
    if (d == chunked) {
      add(main_, d, nest_.sizes[d] / row_.chunk, row_.chunk);
    } else {
      add(main_, d, nest_.sizes[d], 1);
      add(tail_, d, nest_.sizes[d], 1);
    }
  }
  main_.operands = tail_.operands = nest_.operands;
  main_.length = row_.length;
  std::copy_n(rows_.data, nest_.operands, main_.data);
  std::copy_n(rows_.data, nest_.operands, tail_.data);
  if (chunked < 0) return;
  const std::int64_t done = nest_.sizes[chunked] / row_.chunk * row_.chunk;
  tail_.length = row_.length / row_.chunk * (nest_.sizes[chunked] - done);
  for (int k = 0; k < nest_.operands; ++k) tail_.data[k] += done * nest_.strides[k][chunked];
}

// Returns the access pattern of the input, which is transposed if it is packed and contiguous
// across the rows.
Layout LoopLayout::input_layout(const LoopNest& loop_nest) const {
  const Layout layout = rows_.layout[1];
  const bool packed = layout == Layout::strided || layout == Layout::gathered;
  if (!packed || has_runs() || loop_nest.rank == 0 || loop_nest.loops[0].size == 1) return layout;
  return loop_nest.loops[0].strides[1] == nest_.element_size ? Layout::transposed : layout;
}

bool LoopLayout::has_common_steps() const {
  return std::all_of(rows_.offsets, rows_.offsets + nest_.operands,
                     [](const std::int64_t* offsets) { return offsets == nullptr; });
}

bool LoopLayout::has_runs() const {
  return (rows_.offsets[0] != nullptr && rows_.run[0] > 1) ||
         (rows_.offsets[1] != nullptr && rows_.run[1] > 1);
}

void LoopLayout::run_rows(Rows rows, const LoopNest& loop_nest, RowKernel kernel,
                          const void* parameters) const {
  rows.length = loop_nest.length;
  std::copy_n(loop_nest.data, nest_.operands, rows.data);
  if (loop_nest.rank > 0) {
    rows.count = loop_nest.loops[0].size;
    rows.row_offsets = loop_nest.row_offsets;
    for (int k = 0; k < nest_.operands; ++k) rows.pitch[k] = loop_nest.loops[0].strides[k];
    rows.outer_rank = loop_nest.rank - 1;
    rows.outer = loop_nest.loops + 1;
  }
  kernel(rows, parameters);
}

void LoopLayout::run_shard(const LoopNest& loop_nest, std::int64_t shards, std::int64_t i,
                           RowKernel kernel, const void* parameters) const {
  Rows rows = rows_;
  rows.layout[1] = input_layout(loop_nest);
  if (shards == 1) return run_rows(rows, loop_nest, kernel, parameters);
  // Elements of gathered rows have no common step.
  const std::int64_t row_bytes = has_common_steps() ? loop_nest.length * nest_.element_size : 0;
  const int split = split_loop(loop_nest, row_bytes, shards);
  if (split != kElements) {
    return for_each_box_of_shard(loop_nest, split, shards, i, [&](const LoopNest& box) {
      run_rows(rows, box, kernel, parameters);
    });
  }
  // A single gathered row is no longer than an offset table, so it forms one shard. Shards of an
  // aligned row share no cache line.
  const std::int64_t unit = row_bytes > 0 ? 64 : loop_nest.length;
  LoopNest part = loop_nest;
  const std::int64_t begin = shard_begin(loop_nest.length, shards, i, unit);
  part.length = shard_begin(loop_nest.length, shards, i + 1, unit) - begin;
  for (int k = 0; k < nest_.operands; ++k) part.data[k] += begin * rows.step[k];
  if (part.length > 0) run_rows(rows, part, kernel, parameters);
}

void LoopLayout::run(std::int64_t shards, RowKernel kernel, const void* parameters) const {
  if (shards > 1) shards = fitting_shards(main_, shards, get_num_threads());
  parallel_for(static_cast<int>(shards), [&](int i) {
    run_shard(main_, shards, i, kernel, parameters);
    if (tail_.length > 0) run_shard(tail_, shards, i, kernel, parameters);
  });
}

}  // namespace dmlops
