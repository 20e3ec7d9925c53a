// Runs kernels over loop nests, in shards on the thread pool.
#include "traversal/run.hpp"

#include <algorithm>

#include "core/pool.hpp"
#include "core/stack.hpp"
#include "traversal/layout.hpp"
#include "traversal/policy.hpp"

namespace dmlops {

void LoopLayout::set_layouts(Rows& rows, const LoopNest& loop_nest) const {
  rows.by_lines = false;
  for (int k = 1; k < nest_.operands; ++k) {
    rows.layout[k] = layout_of(k, loop_nest);
    if (!loop_nest.has_rows() || k >= dense_end()) continue;
    if (rows.layout[k] == Layout::transposed || shares_lines(k, stride_of(loop_nest, 0, k)))
      rows.by_lines = true;
  }
}

void LoopLayout::run_rows(Rows& rows, const LoopNest& loop_nest, RowKernel kernel,
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
  set_layouts(rows, loop_nest);
  if (split.shards == 1) return run_rows(rows, loop_nest, kernel, parameters);
  for_each_box_of_shard(loop_nest, split, i,
                        [&](const LoopNest& box) { run_rows(rows, box, kernel, parameters); });
}

void LoopLayout::run(std::int64_t shards, RowKernel kernel, const void* parameters) {
  if (shards == 1 && tail_.length == 0) {  // small calls need no copy of the rows
    set_layouts(rows_, main_);
    return run_rows(rows_, main_, kernel, parameters);
  }
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

namespace {

// Not inlined, since the layout takes as much of the stack as some kernels.
[[gnu::noinline]] void run_layout(const Nest& nest, char* const* data, RowKernel kernel,
                                  const void* parameters) {
  LoopLayout layout(nest, data, streams(nest, data));
  const std::int64_t work = nest.bytes_per_element + layout.packing_work();
  layout.run(shard_count(work * element_count(nest)), kernel, parameters);
}

}  // namespace

void run(const Nest& nest, char* const* data, RowKernel kernel, const void* parameters) {
  require_stack(kElementwiseStack);
  run_layout(nest, data, kernel, parameters);
}

}  // namespace dmlops
