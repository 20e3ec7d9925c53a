// Checks the stack of the calling thread.
#include "core/stack.hpp"

#include <algorithm>
#include <cstdint>

#include "core/text.hpp"
#include "dmlops/error.hpp"

#if defined(__linux__)
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dmlops {

#if defined(__linux__)
namespace {

// The lowest address to which the kernel extends the main thread's stack, or 1 if it is unknown.
std::uintptr_t lowest_of_main_thread(std::uintptr_t end) {
  rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return 1;
  // Arguments and environment, past the end that musl reports, take at most a quarter of the limit.
  const std::uintptr_t size = limit.rlim_cur / 4 * 3;
  return size < end ? end - size : 1;
}

// The lowest address of the calling thread's stack, or 1 if it is unknown.
std::uintptr_t find_lowest() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 1;
  void* address = nullptr;
  std::size_t size = 0, guard = 0;
  const bool found = pthread_attr_getstack(&attributes, &address, &size) == 0 &&
                     pthread_attr_getguardsize(&attributes, &guard) == 0;
  pthread_attr_destroy(&attributes);
  if (!found) return 1;
  const std::uintptr_t lowest = reinterpret_cast<std::uintptr_t>(address) + guard;
  // musl reports only the mapped pages of the main thread's stack, 132 KiB at first.
  if (guard == 0 && syscall(SYS_gettid) == getpid())
    return std::min(lowest, lowest_of_main_thread(lowest + size));
  return lowest;
}

}  // namespace

void require_stack(std::size_t bytes) {
  thread_local std::uintptr_t lowest_address = 0;
  if (lowest_address == 0) lowest_address = find_lowest();
  const std::uintptr_t left =
      reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - lowest_address;
  if (left >= bytes) return;
  throw Error(concat("the operator keeps up to ", bytes / 1024, " KiB on the stack, and the ",
                     "calling thread has ", left / 1024,
                     " KiB left; create threads with at least 512 KiB"));
}
#else
void require_stack(std::size_t) {}
#endif

}  // namespace dmlops
