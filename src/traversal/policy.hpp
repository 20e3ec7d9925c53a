// The memory policy: when threads share a call, and when outputs are written by non-temporal
// stores.
#pragma once

#include "dmlops/runtime.hpp"
#include "traversal/nest.hpp"

namespace dmlops {

// From this much memory traffic on, or work that takes as long, waking threads pays. Tests set it
// to reach every path with small arrays.
std::int64_t split_threshold();
void set_split_threshold(std::int64_t bytes);

// For tests, which reach every loop with small arrays. The public non_temporal_threshold() reads
// it.
void set_non_temporal_threshold(std::int64_t bytes);

// The number of shards for work of so many bytes; 1 below split_threshold().
std::int64_t shard_count(std::int64_t bytes);

// The begin of shard i of `count` shards of [0, size). Where `unit` fits, shards begin at multiples
// of it.
std::int64_t shard_begin(std::int64_t size, std::int64_t count, std::int64_t i, std::int64_t unit);

// True if an elementwise operator writes its output by non-temporal stores. `data`: where the
// operands begin.
bool streams(const Nest& nest, char* const* data);

}  // namespace dmlops
