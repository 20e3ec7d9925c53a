// The operands' access patterns, their offset tables, and the outer loops.
#include "traversal/layout.hpp"

#include <algorithm>
#include <cstdlib>

namespace dmlops {
namespace {

constexpr std::int64_t kLongRun = 64;  // bytes of a strided run that is packed by itself
// Elements of runs side by side that are a few elements apart, from which columns are packed.
constexpr std::int64_t kFewestStrided = 4;

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

// Returns the offsets of a chain in an operand, over its dimensions from `first` on. Each dimension
// repeats the offsets of the inner ones.
const std::int64_t* LoopLayout::offset_table(const Chain& chain, int operand, int first) {
  std::int64_t* const offsets = tables_ + entries_used_;
  offsets[0] = 0;
  std::int64_t filled = 1;
  for (int i = first; i < chain.rank; ++i) {
    const int d = chain.dimensions[i];
    const std::int64_t size =
        i == chain.rank - 1 && chain.chunk != 0 ? chain.chunk : nest_.sizes[d];
    // Doubles the table, since single entries would wait for each other.
    for (std::int64_t done = 1, count; done < size; done += count) {
      count = std::min(done, size - done);
      const std::int64_t distance = done * stride(operand, d);
      for (std::int64_t k = 0; k < count * filled; ++k)
        offsets[done * filled + k] = offsets[k] + distance;
    }
    filled *= size;
  }
  entries_used_ += filled;
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
  return stride > 0 && stride <= largest_step() && stride < std::llabs(step);
}

void LoopLayout::set_operand(int k) {
  const std::int64_t size = nest_.element_size, step = stride(k, row_.dimensions[0]);
  // True if the operand is contiguous along the columns.
  const bool across = column_.rank > 0 && common_steps(column_, k) == column_.rank &&
                      is_across(stride(k, column_.dimensions[0]), step);
  rows_.step[k] = step;
  rows_.offsets[k] = nullptr;
  const int in_run = common_steps(row_, k);
  if (in_run < row_.rank) {
    const auto elements = [this](int end) {
      std::int64_t count = 1;
      for (int i = 0; i < end; ++i) count *= nest_.sizes[row_.dimensions[i]];
      return count;
    };
    // The outermost dimensions with a common step repeat the offsets of the inner ones.
    int outer = row_.rank - 1;
    const auto continues = [this, k](int i) {
      const int inner = row_.dimensions[i - 1];
      return stride(k, row_.dimensions[i]) == stride(k, inner) * nest_.sizes[inner];
    };
    while (outer > in_run && continues(outer)) --outer;
    const std::int64_t run = elements(in_run), period_step = stride(k, row_.dimensions[outer]);
    const std::int64_t run_step = outer == in_run ? period_step : 0;
    // Runs are packed as runs if they are contiguous, broadcast, long or side by side. The elements
    // of other runs, and of transposed operands, are gathered one by one.
    const bool is_long = run >= kShort || run * size > kLongRun;
    const bool side_by_side =
        is_across(run_step, step) && (run_step == size || run >= kFewestStrided);
    const bool is_simple = step == 0 || is_long || side_by_side;
    const bool by_run = (step == size || (k != 0 && is_simple)) && !across;
    rows_.offsets[k] = offset_table(row_, k, by_run ? in_run : 0);
    rows_.run[k] = by_run ? run : 1;
    rows_.period[k] = elements(outer);
    rows_.period_step[k] = period_step;
    rows_.layout[k] = Layout::gathered;
  } else if (step == size) {
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

// Returns the dimension that is split into chunks, or -1.
int LoopLayout::chunked_dimension() const {
  const Chain& split = split_chain();
  return split.chunk != 0 ? split.dimensions[split.rank - 1] : -1;
}

void LoopLayout::choose_outer_loops() {
  int dimensions[kMaxRank], count = 0;
  for (int d = 0; d < nest_.rank; ++d) {
    if (!taken_[d] || d == chunked_dimension()) dimensions[count++] = d;
  }
  rows_.count = 1;
  for (int k = 0; k < nest_.operands; ++k) rows_.pitch[k] = 0;
  if (column_.rank == 0 && count > 1) count = choose_counter(dimensions, count);
  const auto add = [this](int d, std::int64_t size, std::int64_t chunk) {
    Loop& loop = main_.loops[main_.rank++];
    loop.size = size;
    for (int k = 0; k < nest_.operands; ++k) loop.strides[k] = stride(k, d) * chunk;
  };
  if (column_.rank > 0) {
    add(column_.dimensions[0], column_.length, 1);
    for (int k = 0; k < nest_.operands; ++k) {
      if (common_steps(column_, k) == column_.rank) continue;
      main_.row_offsets[k] = offset_table(column_, k, 0);
      main_.loops[0].strides[k] = 0;
    }
  }
  const int chunked = chunked_dimension();
  int of_chunks = -1;  // the loop over chunks
  for (int i = 0; i < count; ++i) {
    const int d = dimensions[i];
    if (d == chunked) of_chunks = main_.rank;
    add(d, nest_.sizes[d] / chunk_of(d), chunk_of(d));
  }
  main_.operands = nest_.operands;
  main_.length = row_.length;
  std::copy_n(rows_.step, nest_.operands, main_.step);
  std::copy_n(rows_.data, nest_.operands, main_.data);
  // Parts of an aligned row share no cache line.
  main_.unit = keeps_rows_whole() ? kTable : kLineBytes / nest_.element_size;
  if (chunked >= 0 && nest_.sizes[chunked] % chunk_of(chunked) != 0) set_tail(chunked, of_chunks);
}

// Moves the dimension that counts rows to the front of the given ones, or joins rows of several
// dimensions to a column. Returns the number of the remaining dimensions.
int LoopLayout::choose_counter(int* dimensions, int count) {
  const int first = row_counter(dimensions, count);
  const Chain joined = joined_rows(dimensions, count, first);
  if (joined.rank == 1) {
    std::rotate(dimensions, dimensions + first, dimensions + first + 1);
    return count;
  }
  column_ = joined;
  for (int i = 0; i < column_.rank; ++i) taken_[column_.dimensions[i]] = true;
  const auto is_joined = [this](int d) { return taken_[d] && d != chunked_dimension(); };
  return static_cast<int>(std::remove_if(dimensions, dimensions + count, is_joined) - dimensions);
}

// True if rows are not split between threads: elements of gathered rows have no common step, and a
// row may repeat an element of its own.
bool LoopLayout::keeps_rows_whole() const {
  for (int k = 0; k < nest_.operands; ++k) {
    const bool repeats = k > 0 && rows_.step[k] == 0 && rows_.data[k] == rows_.data[0];
    if (rows_.offsets[k] != nullptr || repeats) return true;
  }
  return false;
}

// Sets the tail to the remainder of the chunked dimension, without the loop over whole chunks.
void LoopLayout::set_tail(int chunked, int of_chunks) {
  const Chain& split = split_chain();
  const std::int64_t remainder = nest_.sizes[chunked] % split.chunk;
  tail_ = main_;
  std::copy(main_.loops + of_chunks + 1, main_.loops + main_.rank, tail_.loops + of_chunks);
  --tail_.rank;
  std::int64_t& shortened = &split == &row_ ? tail_.length : tail_.loops[0].size;
  shortened = shortened / split.chunk * remainder;
  const std::int64_t done = nest_.sizes[chunked] - remainder;
  for (int k = 0; k < nest_.operands; ++k) tail_.data[k] += done * stride(k, chunked);
}

// True if an input is packed and contiguous across rows a stride apart.
bool LoopLayout::is_transposed(int k, std::int64_t stride) const {
  const Layout layout = rows_.layout[k];
  const bool packed = layout == Layout::strided || layout == Layout::gathered;
  return packed && !has_runs(0) && !has_runs(k) && is_across(stride, rows_.step[k]);
}

// Returns the access pattern of an operand.
Layout LoopLayout::layout_of(int k, const LoopNest& loop_nest) const {
  const bool transposed =
      k > 0 && loop_nest.has_rows() && is_transposed(k, loop_nest.loops[0].strides[k]);
  return transposed ? Layout::transposed : rows_.layout[k];
}

bool LoopLayout::has_runs(int k) const { return rows_.offsets[k] != nullptr && rows_.run[k] > 1; }

}  // namespace dmlops
