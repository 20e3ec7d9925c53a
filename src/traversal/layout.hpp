// The layout of a loop nest: which of its dimensions form the rows that kernels traverse, and how
// each operand reaches a dense block of them.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

// Kernels take two loops, rows of elements. Short rows are extended over further dimensions, over
// the last of these in part; operands that have no common step in the longer row are gathered at
// offsets from a table. In a transposition of many small dimensions, those that are contiguous in
// the output form the rows, and those that are contiguous in the input count them.
class LoopLayout {
 public:
  // `data`: where the operands begin. Keeps a reference to the nest.
  LoopLayout(const Nest& nest, char* const* data, bool streaming);
  LoopLayout(const LoopLayout&) = delete;
  LoopLayout& operator=(const LoopLayout&) = delete;

  // On so many threads, if there is work enough for each.
  void run(std::int64_t shards, RowKernel kernel, const void* parameters) const;

 private:
  static constexpr std::int64_t kTable = 1024;  // offsets of a table

  // Dimensions of the nest as one loop, the innermost first.
  struct Chain {
    int rank = 0;
    int dimensions[kMaxRank];
    std::int64_t length = 1;
    std::int64_t chunk = 0;  // the part of the last dimension, if the chain does not have all of it
  };

  // Rows of one length, and the loops around them, the first of which counts rows.
  struct LoopNest {
    std::int64_t length = 0;
    char* data[kMaxOperands];
    int rank = 0;
    Loop loops[kMaxRank];
  };

  bool choose_transposition();
  void choose_row();
  std::int64_t shortest_normalized_row() const;
  bool extend(Chain& chain, int operand);
  void set_operand(int k);
  void fill(std::int64_t* offsets, const Chain& chain, int operand, std::int64_t unit) const;
  void choose_outer_loops();
  int row_counter(const int* dimensions, int count) const;
  bool has_common_steps() const;  // true if no operand is gathered
  int split_loop(const LoopNest& loop_nest, std::int64_t shards) const;
  void run_shard(const LoopNest& loop_nest, std::int64_t shards, std::int64_t i, RowKernel kernel,
                 const void* parameters) const;

  const Nest& nest_;
  bool taken_[kMaxRank] = {};  // dimensions of the row or of the column
  Chain row_, column_;
  Rows rows_;
  LoopNest main_;
  LoopNest tail_;  // the remainder of the dimension that the row has in part
  std::int64_t tables_[kMaxOperands][kTable];
};

}  // namespace dmlops
