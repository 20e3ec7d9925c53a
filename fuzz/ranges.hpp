// Ranges of accepted results, and helpers that several references share.
#pragma once

#include <cstddef>
#include <vector>

#include "descriptors/table.hpp"
#include "reference.hpp"

namespace dmlops::fuzz {

// The accepted range of a result, before it is rounded to the tensor's type.
struct Range {
  double low, high;
  bool any = false;  // no bound, as after an overflow of an intermediate
};

Range around(double value, double error);

// The error bound of computing in float32 near `value`: a number of ulp, or, for float16, the
// promised fraction of an ulp besides the rounding.
double arithmetic_error(double value, double ulps, DataType type, double of_float16 = 0.001);

// The results of an activation for a range of its input.
Range activation(const OperatorDesc& desc, const Range& x);

// Maps a row-major index of the sizes `sizes` to that of a tensor whose dimensions of size 1 are
// broadcast.
std::size_t position(const BufferTensorDesc& tensor, const BufferTensorDesc& like,
                     std::size_t index);

// The elements of each group.
std::vector<std::vector<std::size_t>> groups(const BufferTensorDesc& tensor, unsigned int reduced,
                                             std::size_t elements);

// Aborts unless a result is within the range.
void require(double actual, const Range& range, DataType type, std::size_t index);

// Checks the output of normalization by the input's moments, and the input's gradient.
void check_normalization(const OperatorDesc& desc, const OperatorInfo& op,
                         const std::vector<Values>& inputs, const std::vector<double>& actual);

}  // namespace dmlops::fuzz
