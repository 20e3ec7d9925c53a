// Turns tensors of equal sizes and any strides into rows for a kernel, and runs them on the
// threads.
#pragma once

#include "float_environment.hpp"
#include "kernels/kernel.hpp"

namespace dmlops {

// The dimensions of an elementwise traversal, the innermost first: those of size 1 dropped, ordered
// by the output's strides, neighbours merged where every operand allows it. Dense tensors of any
// rank become one row.
struct Plan {
  int operands = 0;
  // In bytes; 0 where a kernel takes whole groups and not elements, and so needs their steps.
  std::int64_t element_size = 0;
  std::int64_t bytes_per_element = 0;  // memory traffic, or what takes as long: decides on threads
  std::int64_t split_unit =
      64;  // rows are split at multiples of it: threads should not share cache lines
  // At least 1. What is behind the rank and the operands is not set: to clear it takes as long as
  // to plan a small call.
  int rank = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kMaxOperands][kMaxRank];  // in bytes
  char* data[kMaxOperands];
  const std::int64_t* offsets = nullptr;      // of Rows, for dimension 0
  const std::int64_t* row_offsets = nullptr;  // of Rows, for dimension 1
  bool non_temporal = false;                  // of Rows
};

// How many elements the output has.
std::int64_t element_count(const Plan& plan);

// Inputs are broadcast to the output: a dimension of size 1 gets stride 0. No size may be 0.
// `work`: in bytes, what the formula takes for an element, if that is more than reading and writing
// it.
Plan make_plan(const TensorView& output, const ConstTensorView* inputs, int input_count,
               std::int64_t work = 0);

// Splits the rows over the threads where there is enough work, and calls the kernel. `data`: where
// the operands are, if not where the plan says. Kernels need the state that the caller holds; other
// threads enter it themselves.
void run(const FloatEnvironment& environment, const Plan& plan, char* const* data, RowKernel kernel,
         const void* parameters);
inline void run(const FloatEnvironment& environment, const Plan& plan, RowKernel kernel,
                const void* parameters) {
  run(environment, plan, plan.data, kernel, parameters);
}

// Most calls are small, on dense tensors. Where both have the same type and sizes, lie dense in
// row-major order, and are apart or the same, every rule about them holds, and they are one row:
// runs the kernel and returns true. Elsewhere does nothing. `work` as in make_plan.
bool run_if_plain(const FloatEnvironment& environment, const ConstTensorView& input,
                  const TensorView& output, RowKernel kernel, const void* parameters,
                  std::int64_t work = 0);

}  // namespace dmlops
