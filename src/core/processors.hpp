// Which processors the threads may run on.
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

// Keeps another thread off the processor of this one, which is about to wake it. Linux likes to
// bring both together, as if the one that wakes were about to wait; then they take turns, where
// they should work side by side. Returns that processor. `before` is what the last call for the
// thread returned, -1 at first.
inline int keep_apart([[maybe_unused]] std::thread::native_handle_type thread, int before) {
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
