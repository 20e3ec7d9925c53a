// Decisions about rows: which are extended over further dimensions, and which repeat.
#pragma once

#include "traversal/nest.hpp"

namespace dmlops {

// Returns the smallest number of elements of the first dimension that is a row by itself. Longer
// rows have up to `table` elements.
std::int64_t shortest_row(const Nest& nest, std::int64_t table);

// True if a formula of one input repeats an input of at most `capacity` elements, which is computed
// once, as a row.
bool repeats_row(const Nest& nest, std::int64_t capacity);

}  // namespace dmlops
