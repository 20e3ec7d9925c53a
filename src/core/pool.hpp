// The threads. This header and pool.cpp are the only place that knows how work is run in parallel.
#pragma once

#include "dmlops/runtime.hpp"

namespace dmlops {

// Calls task(context, i) for each i in [0, count), on up to get_num_threads() threads, the caller's
// among them, and returns when all are done. The shards must be independent and must not throw.
// Runs them one after another on the caller's thread when the pool is busy with another caller's
// work.
void parallel_for(int count, void (*task)(const void* context, int shard), const void* context);

// Sets the number of threads for the calls of this thread alone, and returns the one before; 0
// stands for the number of the process.
int exchange_own_num_threads(int count);

template <class Task>
void parallel_for(int count, const Task& task) {
  parallel_for(
      count, [](const void* context, int shard) { (*static_cast<const Task*>(context))(shard); },
      &task);
}

}  // namespace dmlops
