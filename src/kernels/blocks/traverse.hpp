// Traverses rows of any layout in dense blocks.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/vec.hpp"

// VBMI does not change the traversal.
#if defined(__AVX512VBMI__)
#define DMLOPS_TRAVERSAL_TARGET avx512
#else
#define DMLOPS_TRAVERSAL_TARGET DMLOPS_TARGET
#endif

namespace dmlops::DMLOPS_TRAVERSAL_TARGET {

constexpr int kMaxInputs = 2;  // of a formula

// Dense rows of an operand, in place or in a buffer.
template <class Byte>
struct DenseRows {
  Byte* data;
  std::int64_t pitch = 0;                 // bytes between rows
  const std::int64_t* offsets = nullptr;  // replaces the pitch unless null

  DMLOPS_INLINE Byte* operator[](std::int64_t r) const {
    return data + (offsets != nullptr ? offsets[r] : r * pitch);
  }
  // Returns the rows from r on, each `bytes` further.
  DMLOPS_INLINE DenseRows from(std::int64_t r, std::int64_t bytes) const {
    if (offsets != nullptr) return {data + bytes, pitch, offsets + r};
    return {data + r * pitch + bytes, pitch};
  }
  // True if rows of this size follow one another.
  bool is_contiguous(std::int64_t bytes) const { return offsets == nullptr && pitch == bytes; }
};

struct Block {
  const Rows* rows = nullptr;        // in the outer loops' current iteration
  std::int64_t row = 0, column = 0;  // the position of the first element in the traversal
  std::int64_t count = 1, length;    // rows, elements of a row
  DenseRows<char> output;
  DenseRows<const char> inputs[kMaxInputs];
  int constant = 0;  // the operand with one element for each row, or 0
};

// Computes a block's output from its input.
using Transform = void (*)(const Block& block, const void* context);

// The loops of an elementwise formula. `every_second` and `streaming` may be null, which selects
// packing and unpacking.
struct Transforms {
  Transform dense;
  Transform every_second = nullptr;  // the input has a step of 2 elements; streaming or not
  Transform streaming = nullptr;     // writes the output by non-temporal stores
};

struct Traversal {
  std::int64_t size;  // bytes of an element
  Transforms transforms;
  const void* context;
  // True if a result depends on its elements of the inputs only, so that contiguous rows may be
  // merged, and broadcast results of one input are computed once.
  bool elementwise;
  int inputs = 1;  // the operands from 1 on that the traversal passes as dense rows
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
  const bool is_dense_row = rows.count == 1 && rows.outer_rank == 0 &&
                            rows.layout[0] == Layout::in_place &&
                            rows.layout[1] == Layout::in_place;
  if (is_dense_row && !rows.streaming) {
    Block block;
    block.length = rows.length;
    block.output.data = rows.data[0];
    block.inputs[0].data = rows.data[1];
    return transforms.dense(block, context);
  }
  traverse(rows, {size, transforms, context, true});
}

}  // namespace dmlops::DMLOPS_TARGET
