// The operators' definitions, one element at a time in double, and the error that each may have.
#pragma once

#include <vector>

#include "dmlops/descriptors.hpp"

namespace dmlops::fuzz {

// A tensor's elements in row-major order, floating-point ones as double, integers exactly.
struct Values {
  std::vector<double> floating;
  std::vector<__int128> integer;
};

Values read(const BufferTensorDesc& tensor, const char* memory);

// Aborts unless `actual` is the operator's result for `inputs`, each read through its strides with
// broadcasts expanded.
void check_result(const OperatorDesc& desc, const std::vector<Values>& inputs,
                  const Values& actual);

}  // namespace dmlops::fuzz
