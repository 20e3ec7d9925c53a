// Traverses rows of any layout in dense blocks.
#pragma once

#include "kernels/blocks/elements.hpp"
#include "kernels/kernel.hpp"

// VBMI does not change the traversal.
#if defined(__AVX512VBMI__)
#define DMLOPS_TRAVERSAL_TARGET avx512
#else
#define DMLOPS_TRAVERSAL_TARGET DMLOPS_TARGET
#endif

namespace dmlops::DMLOPS_TRAVERSAL_TARGET {

// Dense rows, in the operands or in buffers.
struct Block {
  const Rows* rows = nullptr;        // in the outer loops' current iteration
  std::int64_t row = 0, column = 0;  // the position of the first element in the traversal
  std::int64_t count = 1, length;    // rows, elements of a row
  char* output;
  const char* input;
  std::int64_t output_pitch = 0, input_pitch = 0;  // bytes between rows
  const std::int64_t* output_offsets = nullptr;    // replaces the pitch unless null

  DMLOPS_INLINE char* output_row(std::int64_t r) const {
    return output + (output_offsets != nullptr ? output_offsets[r] : r * output_pitch);
  }
  DMLOPS_INLINE const char* input_row(std::int64_t r) const { return input + r * input_pitch; }
};

// Computes a block's output from its input.
using Transform = void (*)(const Block& block, const void* context);

// The loops of an elementwise formula. `every_second` and `streaming` may be null, which selects
// packing and unpacking.
struct Transforms {
  Transform dense;
  Transform every_second = nullptr;  // the input has a step of 2 elements
  Transform streaming = nullptr;     // writes the output by non-temporal stores
};

struct Traversal {
  std::int64_t size;  // bytes of an element
  Transforms transforms;
  const void* context;
  // True if a result depends on its element of operand 1 only, so that broadcast results are
  // computed once, and contiguous rows may be merged.
  bool elementwise;
  // True if operand 1 is broadcast along rows, and the transforms read its elements.
  bool reads_constants = false;
  // If positive, the inner loop iterates over the rows, the outer one over packed blocks of at most
  // this number of columns.
  std::int64_t shared_columns = 0;
};

void traverse(const Rows& rows, const Traversal& traversal);

}  // namespace dmlops::DMLOPS_TRAVERSAL_TARGET

namespace dmlops::DMLOPS_TARGET {

using namespace DMLOPS_TRAVERSAL_TARGET;

// Traverses an elementwise operator. A single dense row, the usual small call, is a single block.
DMLOPS_INLINE void traverse_elements(const Rows& rows, std::int64_t size,
                                     const Transforms& transforms, const void* context) {
  if (rows.count == 1 && rows.outer_rank == 0 && rows.layout[0] == Layout::in_place &&
      rows.layout[1] == Layout::in_place && !rows.streaming) {
    Block block;
    block.length = rows.length;
    block.output = rows.data[0];
    block.input = rows.data[1];
    return transforms.dense(block, context);
  }
  traverse(rows, {size, transforms, context, true});
}

}  // namespace dmlops::DMLOPS_TARGET
