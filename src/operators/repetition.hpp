// Results that repeat: dimensions along which no input varies are computed once, then copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traversal/run.hpp"

namespace dmlops {

// Copies the first results along a dimension of the output to the others, and perhaps to
// themselves.
class ResultCopy {
 public:
  ResultCopy(const TensorView& output, std::size_t axis);

  // `output`: the output's address in place of `planned`, the one in the plan.
  void run(char* output, const char* planned) const;

 private:
  Nest nest_;
  RowKernel kernel_;
  std::int64_t offset_;  // from the first results to those that are written
};

// Returns a copy for each dimension that no input varies along, in the order in which they run, and
// sets its size to 1 in all views. `reduced`: axes, as bits, that are left alone. Inputs have
// strides of 0 or sizes of 1 where they do not vary.
std::vector<ResultCopy> remove_repetition(TensorView& output, ConstTensorView* inputs,
                                          int input_count, unsigned int reduced = 0);

}  // namespace dmlops
