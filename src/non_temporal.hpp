// The threshold of non-temporal stores, as tests set it.
#pragma once

#include <cstdint>

namespace dmlops {

// Replaces the value of non_temporal_threshold(), in bytes, for all later calls.
void set_non_temporal_threshold(std::int64_t bytes);

}  // namespace dmlops
