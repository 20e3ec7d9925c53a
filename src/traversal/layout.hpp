// The layout of a loop nest: the dimensions that form the rows for the kernels, and each operand's
// access pattern, by which it is packed into dense blocks. layout.cpp has packing and outer loops,
// choose_rows.cpp rows and columns, run.cpp the shards.
#pragma once

#include <algorithm>

#include "traversal/nest.hpp"
#include "traversal/shards.hpp"

namespace dmlops {

// Kernels traverse two loops: rows of elements. Short rows are extended over further dimensions, of
// which the last may be split into chunks. Operands without a common step along an extended row are
// gathered through an offset table. Packed rows that are too few for a block are joined with those
// of further dimensions; operands in which they have no common pitch get a table of rows. In a
// transposition, dimensions contiguous in the output form the rows, and those contiguous in an
// input, or with a step of a few elements, form the columns.
class LoopLayout {
 public:
  // `data` points to the operands' first elements. Keeps a reference to the nest.
  LoopLayout(const Nest& nest, char* const* data, bool streaming);
  LoopLayout(const LoopLayout&) = delete;
  LoopLayout& operator=(const LoopLayout&) = delete;

  std::int64_t packing_work() const;

  // Runs the kernel on up to this number of shards. To be called once, since it uses the rows.
  void run(std::int64_t shards, RowKernel kernel, const void* parameters);

 private:
  static constexpr std::int64_t kRowTable = 128;  // rows that are joined
  // Rows and columns of fewer elements are extended by an offset table.
  static constexpr std::int64_t kShort = 32;

  // Dimensions of the nest merged into one loop, the innermost first.
  struct Chain {
    int rank = 0;
    int dimensions[kMaxRank];
    std::int64_t length = 1;
    std::int64_t step = 0;   // bytes between its elements in the operand that it follows
    std::int64_t chunk = 0;  // indices of the last dimension, if it is split
  };

  // Stride of an operand, negated where the dimension is traversed in reverse order.
  std::int64_t stride(int k, int d) const {
    return reversed_[d] ? -nest_.strides[k][d] : nest_.strides[k][d];
  }
  // Returns the largest step of a transposed operand's columns, in bytes.
  std::int64_t largest_step() const { return std::min<std::int64_t>(4 * nest_.element_size, 16); }
  // True if the operands from 2 on are batch normalization's parameters, otherwise inputs of a
  // formula.
  bool has_parameters() const { return nest_.operands > 3; }
  // One past the last operand that kernels get as dense rows.
  int dense_end() const { return has_parameters() ? 2 : nest_.operands; }
  // The chain that is split into chunks, or the row.
  const Chain& split_chain() const { return column_.chunk != 0 ? column_ : row_; }
  std::int64_t row_capacity() const;
  std::int64_t row_chunk(int d, std::int64_t largest) const;
  bool choose_transposition();
  bool transpose(int operand);
  void choose_row();
  bool extend(Chain& chain, int operand);
  void set_operand(int k);
  bool is_across(std::int64_t stride, std::int64_t step) const;
  int common_steps(const Chain& chain, int operand) const;
  const std::int64_t* offset_table(const Chain& chain, int operand, int first);
  void choose_outer_loops();
  int choose_counter(int* dimensions, int count);
  bool keeps_rows_whole() const;
  void set_tail(int chunked, int of_chunks);
  int chunked_dimension() const;
  std::int64_t chunk_of(int d) const;
  bool counts_few(int d) const;
  int row_counter(const int* dimensions, int count) const;
  int broadcast_counter(const int* dimensions, int count) const;
  int line_sharing_counter(const int* dimensions, int count) const;
  bool is_shared_by_rows(int k, const int* dimensions, int count) const;
  Chain joined_rows(const int* dimensions, int count, int first) const;
  bool packs() const;
  bool transposes(int d) const;
  bool shares_lines(int k, std::int64_t distance) const;
  bool rows_share_lines(int d) const;
  bool broadcast_alike(int a, int b) const;
  bool has_runs(int k) const;  // true if rows of the operand consist of runs of several elements
  bool is_transposed(int k, std::int64_t stride) const;
  Layout layout_of(int k, const LoopNest& loop_nest) const;
  void set_layouts(Rows& rows, const LoopNest& loop_nest) const;
  void run_shard(const LoopNest& loop_nest, const Split& split, std::int64_t i, RowKernel kernel,
                 const void* parameters) const;
  void run_rows(Rows& rows, const LoopNest& loop_nest, RowKernel kernel,
                const void* parameters) const;

  const Nest& nest_;
  bool taken_[kMaxRank] = {};  // dimensions of the row, the column or the joined rows
  bool reversed_[kMaxRank] = {};
  Chain row_, column_;  // the column: of a transposition, or the joined rows
  Rows rows_;
  LoopNest main_;
  LoopNest tail_;  // the remainder of a split dimension; rows of length 0 if there is none
  std::int64_t entries_used_ = 0;
  std::int64_t tables_[kMaxOperands * (kTable + kRowTable)];
};

}  // namespace dmlops
