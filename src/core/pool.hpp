// The thread pool.
#pragma once

#include "dmlops/runtime.hpp"

namespace dmlops {

// Calls task(context, i) for each shard i in [0, count), on up to get_num_threads() threads
// including the caller's, and returns after all have ended. Shards must be independent and must not
// throw. If the pool is busy with another caller's work, all shards run on the caller's thread.
// Workers are in the default floating-point state.
void parallel_for(int count, void (*task)(const void* context, int shard), const void* context);

// Sets the number of threads for calls from the current thread, and returns the previous number; 0
// stands for the process-wide number.
int exchange_own_num_threads(int count);

template <class Task>
void parallel_for(int count, const Task& task) {
  parallel_for(
      count, [](const void* context, int shard) { (*static_cast<const Task*>(context))(shard); },
      &task);
}

}  // namespace dmlops
