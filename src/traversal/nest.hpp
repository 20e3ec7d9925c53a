// The canonical loop nest of an operator: its dimensions in the order of the output's memory.
#pragma once

#include "kernels/kernel.hpp"

namespace dmlops {

// Dimension 0 is the innermost. Dimensions of size 1 are dropped, the output's strides are positive
// and ascending, and adjacent dimensions are merged where every operand allows it: dense tensors of
// any rank have one dimension. Operand 0 is the output.
struct Nest {
  int operands = 0;
  std::int64_t element_size = 0;
  // Bytes of memory traffic per element, or the traffic that takes as long as a slower formula.
  // Decides on threads.
  std::int64_t bytes_per_element = 0;
  int rank = 0;  // at least 1
  // Entries past `rank` and `operands` are uninitialized; clearing them would double the cost of
  // planning a small call.
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kMaxOperands][kMaxRank];  // in bytes
  char* data[kMaxOperands];
};

// Inputs are broadcast to the output: a dimension of size 1 gets stride 0. No size may be 0.
// `work`: bytes of memory traffic that take as long as the formula for an element, if it is slower
// than reading and writing the element.
Nest make_nest(const TensorView& output, const ConstTensorView* inputs, int input_count,
               std::int64_t work = 0);

std::int64_t element_count(const Nest& nest);

// Returns the number of elements of an operand, each repeated one counted once.
std::int64_t distinct_elements(const Nest& nest, int operand);

}  // namespace dmlops
