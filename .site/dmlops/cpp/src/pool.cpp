// A lazily started pool of sleeping threads behind parallel_for.
#include "pool.hpp"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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
  const char* text = std::getenv("DMLOPS_NUM_THREADS");
  if (text == nullptr || *text == '\0') return usable_processors();
  char* end = nullptr;
  errno = 0;
  const long long count = std::strtoll(text, &end, 10);
  if (*end != '\0' || errno != 0) {
    throw std::invalid_argument("DMLOPS_NUM_THREADS=" + std::string(text) +
                                " is not a whole number");
  }
  return checked_thread_count(count, "DMLOPS_NUM_THREADS");
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

class Pool {
 public:
  void run(int count, void (*task)(const void*, int), const void* context) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      start_workers(count - 1);
      task_ = task;
      context_ = context;
      count_ = count;
      next_.store(0, std::memory_order_relaxed);
      wanted_ = count - 1;
    }
    wake_.notify_all();
    work(task, context, count);
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ = 0;  // whoever has not come by now is not needed
    done_.wait(lock, [this] { return running_ == 0; });
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
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return wanted_ > 0; });
      --wanted_;
      ++running_;
      const auto task = task_;
      const void* const context = context_;
      const int count = count_;
      lock.unlock();
      work(task, context, count);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  void work(void (*task)(const void*, int), const void* context, int count) {
    for (int i = next_.fetch_add(1); i < count; i = next_.fetch_add(1)) task(context, i);
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  int workers_ = 0;
  int wanted_ = 0;   // workers that the current call still wants
  int running_ = 0;  // workers at work
  std::atomic<int> next_{0};
  void (*task_)(const void*, int) = nullptr;
  const void* context_ = nullptr;
  int count_ = 0;
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
