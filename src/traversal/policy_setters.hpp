// Setters of the memory policy's thresholds, for tests, which reach every loop with small arrays.
#pragma once

#include <cstdint>

namespace dmlops {

void set_split_threshold(std::int64_t bytes);
void set_non_temporal_threshold(std::int64_t bytes);

}  // namespace dmlops
