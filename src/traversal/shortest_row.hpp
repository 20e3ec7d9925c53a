// The dimension along which rows lie, and the shortest row that is not extended over further ones.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

constexpr std::int64_t kFewRows = 16;  // of a block

// True if batch normalization's parameters are constant along the dimension.
bool has_constant_parameters(const Nest& nest, int d);

// Returns the dimension along which rows lie: usually 0, that of contiguous results. Rows of batch
// normalization that would be very short, and whose parameters few other rows share, lie along the
// next one, where parameters are vectors.
int row_dimension(const Nest& nest);

// Returns the smallest number of elements of the first dimension that is a row by itself. Longer
// rows have up to `table` elements.
std::int64_t shortest_row(const Nest& nest, std::int64_t table);

}  // namespace dmlops
