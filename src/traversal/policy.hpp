// The memory policy: thresholds for threads and for non-temporal stores.
#pragma once

#include "dmlops/runtime.hpp"
#include "traversal/nest.hpp"

namespace dmlops {

// Throws Error if DMLOPS_NUM_THREADS or DMLOPS_NON_TEMPORAL_THRESHOLD is invalid. Called before the
// first write, since some operators write in several steps.
void require_valid_environment();

// The memory traffic, or work of equal duration, from which waking threads pays off.
std::int64_t split_threshold();

// Returns the number of shards for work of this many bytes; 1 below split_threshold().
std::int64_t shard_count(std::int64_t bytes);

// Returns the begin of shard i of `count` shards of [0, size), a multiple of `unit` if that is
// small enough.
std::int64_t shard_begin(std::int64_t size, std::int64_t count, std::int64_t i, std::int64_t unit);

// True if an operator with this memory traffic, in bytes, writes its output by non-temporal stores.
// `packed`: the input is packed into blocks, or has every second element. `in_place`: the output
// shares the memory of an input.
bool streams(std::int64_t traffic, bool packed, bool in_place);

// True if an elementwise operator writes its output by non-temporal stores. `data` points to the
// operands' first elements.
bool streams(const Nest& nest, char* const* data);

}  // namespace dmlops
