// The shortest row that is not extended over further dimensions.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

// Returns the smallest number of elements of the first dimension that is a row by itself. Longer
// rows have up to `table` elements.
std::int64_t shortest_row(const Nest& nest, std::int64_t table);

}  // namespace dmlops
