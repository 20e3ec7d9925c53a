// A lazily started pool of threads behind parallel_for.
#include "pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "environment.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace dmlops {
namespace {

constexpr long long kMaxThreads = 1024;  // a typing error should not start a million

int checked_thread_count(long long count, const std::string& source) {
  if (count >= 1 && count <= kMaxThreads) return static_cast<int>(count);
  throw std::invalid_argument(source + " must be from 1 to " + std::to_string(kMaxThreads) +
                              ", not " + std::to_string(count));
}

int usable_processors() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned int count = std::thread::hardware_concurrency();
  return count == 0 ? 1 : static_cast<int>(count);
}

int initial_thread_count() {
  const std::optional<long long> count = whole_number_from("DMLOPS_NUM_THREADS");
  return count ? checked_thread_count(*count, "DMLOPS_NUM_THREADS") : usable_processors();
}

std::atomic<int> thread_count{0};  // 0: not asked for yet

// Threads inherit the mask: a signal for the process must not land on a worker.
class SignalsBlocked {
 public:
#if defined(_WIN32)
  SignalsBlocked() {}
#else
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
#endif
};

// Tells the processor that this thread waits.
void relax() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Threads that wait for something to become true. They look again and again for about as long as it
// would take to wake them, since the next call often follows at once; then they sleep.
class Waiters {
 public:
  // `ready` is called until it returns true, and not again.
  template <class Ready>
  void wait(const Ready& ready) {
    if (spin(ready)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    ++sleeping_;
    condition_.wait(lock, ready);
    --sleeping_;
  }

  // After what they wait for has become true for `count` of them. Both sides write before they
  // read: either this thread sees the sleeper, or that one sees what it waits for.
  void notify(int count) {
    if (sleeping_ == 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);  // nobody is between looking and sleeping
    for (int i = std::min<int>(count, sleeping_); i > 0; --i) condition_.notify_one();
  }

 private:
  static constexpr auto kPatience = std::chrono::microseconds(100);

  template <class Ready>
  static bool spin(const Ready& ready) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    do {
      for (int i = 0; i < 16; ++i) {
        if (ready()) return true;
        relax();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  std::atomic<int> sleeping_{0};
};

class Pool {
 public:
  void run(int count, void (*task)(const void*, int), const void* context) {
    start_workers(count - 1);
    task_ = task;
    context_ = context;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    state_ = (count - 1) * kWanted;
    free_.notify(count - 1);
    work();
    state_ &= kWanted - 1;  // whoever has not come by now is not needed
    caller_.wait([this] { return state_ == 0; });
  }

 private:
  void start_workers(int count) {
    if (workers_ >= count) return;
    const SignalsBlocked blocked;
    try {
      for (; workers_ < count; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // The system has no more threads, or no memory for one: those that there are do the work.
    }
  }

  void serve() {
    for (;;) {
      free_.wait([this] { return join(); });
      work();
      if (--state_ == 0) caller_.notify(1);
    }
  }

  // Takes one of the places in the current call, if one is left.
  bool join() {
    std::int64_t state = state_;
    while (state >= kWanted) {
      if (state_.compare_exchange_weak(state, state - kWanted + 1)) return true;
    }
    return false;
  }

  void work() {
    for (int i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) task_(context_, i);
  }

  // Workers at work, and kWanted times those that the current call still wants. While it is not 0,
  // the call goes on and what describes it stays as it is.
  static constexpr std::int64_t kWanted = std::int64_t{1} << 32;
  std::atomic<std::int64_t> state_{0};
  void (*task_)(const void*, int) = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;
  std::atomic<int> next_{0};

  Waiters free_, caller_;
  int workers_ = 0;
};

// The pool is never destroyed: its threads may outlive every static object. A fork leaves the child
// without threads, so that it starts a pool of its own; the lock is held across the fork, so that
// the parent's pool is at rest.
std::mutex pool_in_use;
Pool* pool = nullptr;

#if !defined(_WIN32)
void register_fork_handlers() {
  pthread_atfork([] { pool_in_use.lock(); }, [] { pool_in_use.unlock(); },
                 [] {
                   pool = nullptr;
                   pool_in_use.unlock();
                 });
}
#else
void register_fork_handlers() {}
#endif

thread_local bool inside = false;  // this thread runs a piece: it must not wait for itself

}  // namespace

int get_num_threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = initial_thread_count();
    int unset = 0;
    if (!thread_count.compare_exchange_strong(unset, count)) count = unset;
  }
  return count;
}

void set_num_threads(long long count) {
  thread_count.store(checked_thread_count(count, "set_num_threads: n"), std::memory_order_relaxed);
}

void parallel_for(int count, void (*task)(const void*, int), const void* context) {
  if (count > 1 && !inside) {
    static const bool registered = (register_fork_handlers(), true);
    static_cast<void>(registered);
    const std::unique_lock<std::mutex> lock(pool_in_use, std::try_to_lock);
    if (lock.owns_lock()) {
      if (pool == nullptr) pool = new Pool;
      inside = true;
      pool->run(count, task, context);
      inside = false;
      return;
    }
  }
  for (int i = 0; i < count; ++i) task(context, i);
}

}  // namespace dmlops
