// Processor affinity of threads.
#pragma once

#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace dmlops {

inline int usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned int count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

// Excludes the current processor from the affinity of a thread that is about to be woken. Linux
// tends to place a woken thread on the processor of its waker, as if the waker were about to sleep;
// both would then take turns instead of running in parallel. Returns the current processor.
// `before` is the result of the last call for the thread, initially -1.
inline int exclude_current_processor([[maybe_unused]] std::thread::native_handle_type thread,
                                     int before) {
#if defined(__linux__)
  const int here = sched_getcpu();
  cpu_set_t others;
  if (here == before || here < 0 || here >= CPU_SETSIZE) return before;
  if (sched_getaffinity(0, sizeof others, &others) != 0) return before;
  CPU_CLR(here, &others);
  if (CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread, sizeof others, &others) == 0)
    return here;
#endif
  return before;
}

}  // namespace dmlops
