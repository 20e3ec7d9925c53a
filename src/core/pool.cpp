// A lazily started pool of threads behind parallel_for.
#include "core/pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/environment.hpp"
#include "core/float_environment.hpp"
#include "core/processors.hpp"
#include "core/stack.hpp"
#include "core/text.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace dmlops {
namespace {

// musl's threads have 128 KiB by default.
[[maybe_unused]] constexpr std::size_t kStackBytes = 1024 * 1024;
static_assert(kStackBytes >= 2 * kMomentsStack);

constexpr long long kMaxThreads = 1024;  // a larger number is taken for a typing error

int initial_thread_count() {
  const std::optional<long long> count = whole_number_from("DMLOPS_NUM_THREADS", 1, kMaxThreads);
  return count ? static_cast<int>(*count) : usable_processors();
}

std::atomic<int> thread_count{0};  // 0: not initialized yet

// Blocks signals in workers, which inherit the mask: the main thread must get the process's
// signals. Signals of faults stay unblocked: a fault whose signal is blocked ends the process
// without its handler.
class SignalsBlocked {
 public:
#if defined(_WIN32)
  SignalsBlocked() {}
#else
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP})
      sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
#endif
};

// True while this thread uses the pool, and always in workers: a nested call, and a fork in a
// signal handler, must not wait for the pool.
thread_local bool inside = false;

// Hints to the processor that this is a spin loop.
void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until a condition holds, at most for about 100 us: the next call often follows at once, and
// waking a sleeping thread takes about as long.
template <class Ready>
bool spin(const Ready& ready) {
  if (ready()) return true;  // the usual case at the end of a call; saves reading the clock
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

struct Job {
  void (*task)(const void*, int);
  const void* context;
  int count, step;

  // Runs shards first, first + step, ...
  void run(int first) const {
    for (int i = first; i < count; i += step) task(context, i);
  }
};

// A thread, and the slot in which a caller of the pool leaves a job. Aligned to cache lines, so
// that spinning on one worker's state shares no line with another worker (false sharing).
class alignas(128) Worker {
 public:
  explicit Worker(int first_shard) : first_shard_(first_shard) {
#if defined(_WIN32)
    std::thread thread([this] { serve(); });
    thread_ = thread.native_handle();
    thread.detach();
#else
    pthread_attr_t attributes;
    std::size_t stack = 0;
    pthread_attr_init(&attributes);
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_setstacksize(&attributes, std::max(stack, kStackBytes));
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const int error = pthread_create(
        &thread_, &attributes,
        [](void* worker) -> void* {
          static_cast<Worker*>(worker)->serve();
          return nullptr;
        },
        this);
    pthread_attr_destroy(&attributes);
    if (error != 0) throw std::system_error(error, std::generic_category());
#endif
  }

  void offer(const Job& job) {
    job_ = job;
    if (state_.exchange(State::offered) != State::asleep) return;
    excluded_processor_ = exclude_current_processor(thread_, excluded_processor_);
    notify();
  }

  // Called by the pool's caller: takes the job back and runs it if the thread has not started it.
  void withdraw() {
    if (take()) finish();
  }

  void wait_until_done() {
    if (spin([this] { return state_ != State::taken; })) return;
    sleep(State::taken, State::awaited);
  }

 private:
  enum class State {
    free,     // no job; the thread spins
    asleep,   // no job; the thread sleeps
    offered,  // a job for the thread or, if it is late, for the caller
    taken,    // the job runs, and may not be replaced
    awaited,  // the thread runs the job, and the caller sleeps until the job ends
  };

  void serve() {
    inside = true;
    const FloatEnvironment environment;  // a thread starts in the state of its creator
    for (;;) {
      if (spin([this] { return take(); })) {
        finish();
      } else {
        sleep(State::free, State::asleep);
      }
    }
  }

  bool take() {
    State offered = State::offered;
    return state_ == offered && state_.compare_exchange_strong(offered, State::taken);
  }

  void finish() {
    job_.run(first_shard_);
    if (state_.exchange(State::free) == State::awaited) notify();
  }

  // Sleeps until another thread changes the state; returns at once if the state has changed.
  void sleep(State awake, State asleep) {
    if (!state_.compare_exchange_strong(awake, asleep)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [this, asleep] { return state_ != asleep; });
  }

  void notify() {
    // The lock excludes a thread between its check and its sleep.
    const std::lock_guard<std::mutex> lock(mutex_);
    condition_.notify_one();
  }

  std::atomic<State> state_{State::free};
  Job job_{};
  const int first_shard_;
  std::mutex mutex_;
  std::condition_variable condition_;
  std::thread::native_handle_type thread_ = {};
  int excluded_processor_ = -1;  // the result of exclude_current_processor()
};

class Pool {
 public:
  // Worker i always gets shard i + 1, whose memory its caches may hold from the last call.
  void run(int count, void (*task)(const void*, int), const void* context) {
    start_workers(count - 1);
    const int helpers = std::min(count - 1, static_cast<int>(workers_.size()));
    const Job job{task, context, count, helpers + 1};
    const auto end = workers_.begin() + helpers;
    std::for_each(workers_.begin(), end, [&job](Worker& worker) { worker.offer(job); });
    job.run(0);
    // In reverse order: the workers woken last are the most likely not to have started.
    std::for_each(std::make_reverse_iterator(end), workers_.rend(),
                  [](Worker& worker) { worker.withdraw(); });
    std::for_each(workers_.begin(), end, [](Worker& worker) { worker.wait_until_done(); });
  }

 private:
  void start_workers(int count) {
    if (static_cast<int>(workers_.size()) >= count) return;
    const SignalsBlocked blocked;
    try {
      while (static_cast<int>(workers_.size()) < count) {
        workers_.emplace_back(static_cast<int>(workers_.size()) + 1);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // Without resources for another thread, the existing ones do the work.
    }
  }

  std::deque<Worker> workers_;  // not a vector, since workers must not move
};

// The pool is never destroyed, as its threads may outlive every static object. A fork leaves the
// child without threads, so the child starts its own pool. The lock is held across the fork, so
// that the parent's pool is idle. The handlers are registered when the library is loaded, as a fork
// during the first call already needs them.
std::mutex pool_in_use;
Pool* pool = nullptr;

// Returns null if memory is exhausted: the caller's thread then does the work.
Pool* new_pool() {
  try {
    return new Pool;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Disables cancellation of the calling thread during a job, since workers read its stack.
class CancellationDisabled {
 public:
#if defined(_WIN32)
  CancellationDisabled() {}
#else
  CancellationDisabled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationDisabled() { pthread_setcancelstate(before_, nullptr); }
  CancellationDisabled(const CancellationDisabled&) = delete;
  CancellationDisabled& operator=(const CancellationDisabled&) = delete;

 private:
  int before_;
#endif
};

#if !defined(_WIN32)
[[maybe_unused]] const int kForkHandlers = pthread_atfork(
    [] {
      if (!inside) pool_in_use.lock();
    },
    [] {
      if (!inside) pool_in_use.unlock();
    },
    [] {
      pool = nullptr;
      if (inside) {
        new (&pool_in_use) std::mutex;
      } else {
        pool_in_use.unlock();
      }
    });
#endif

thread_local int own_thread_count = 0;

}  // namespace

int exchange_own_num_threads(int count) { return std::exchange(own_thread_count, count); }

int get_num_threads() {
  if (own_thread_count != 0) return own_thread_count;
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = initial_thread_count();
    int unset = 0;
    if (!thread_count.compare_exchange_strong(unset, count)) count = unset;
  }
  return count;
}

void set_num_threads(long long count) {
  if (count < 1 || count > kMaxThreads) {
    throw Error(concat("set_num_threads: n must be from 1 to ", kMaxThreads, ", not ", count));
  }
  thread_count.store(static_cast<int>(count), std::memory_order_relaxed);
}

void parallel_for(int count, void (*task)(const void*, int), const void* context) {
  if (count > 1 && !inside) {
    const CancellationDisabled not_canceled;
    const Inside here;
    const std::unique_lock<std::mutex> lock(pool_in_use, std::try_to_lock);
    if (lock.owns_lock()) {
      if (pool == nullptr) pool = new_pool();
      if (pool != nullptr) return pool->run(count, task, context);
    }
  }
  for (int i = 0; i < count; ++i) task(context, i);
}

}  // namespace dmlops
