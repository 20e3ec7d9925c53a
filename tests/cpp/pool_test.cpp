// The thread pool: every shard runs once, for any number of callers and calls, also nested and
// after a fork.
#include "core/pool.hpp"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <initializer_list>
#include <stdexcept>
#include <thread>
#include <vector>

#include "restored_settings.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "child_process.hpp"
#endif

namespace dmlops {
namespace {

class Pool : public testing::Test {
  RestoredSettings restored_;
};

// Runs a job of `count` shards, and returns true if each ran exactly once.
bool each_runs_once(int count) {
  std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
  parallel_for(count, [&](int i) { ++runs[static_cast<std::size_t>(i)]; });
  for (const auto& run : runs) {
    if (run != 1) return false;
  }
  return true;
}

TEST_F(Pool, RunsEveryShardOnce) {
  set_num_threads(4);
  for (int count = 0; count < 40; ++count) EXPECT_TRUE(each_runs_once(count)) << count;
  for (int repeat = 0; repeat < 20000; ++repeat) ASSERT_TRUE(each_runs_once(repeat % 4 + 1));
}

// Pauses about as long as workers spin before they sleep.
TEST_F(Pool, SleepersAreWoken) {
  set_num_threads(3);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const auto pause = std::chrono::microseconds(repeat);
    std::atomic<int> runs{0};
    parallel_for(3, [&](int i) {
      if (i > 0) std::this_thread::sleep_for(pause);  // the caller waits
      ++runs;
    });
    ASSERT_EQ(runs, 3);
    std::this_thread::sleep_for(pause);  // the workers wait
  }
}

// The caller would finish the job alone, so the test checks that sleeping workers wake up.
TEST_F(Pool, SleepersTakePart) {
  set_num_threads(2);
  bool together = false;
  for (int attempt = 0; attempt < 100 && !together; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::thread::id threads[2];
    parallel_for(2, [&](int i) {
      threads[i] = std::this_thread::get_id();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
    together = threads[0] != threads[1];
  }
  EXPECT_TRUE(together);
}

TEST_F(Pool, NestedCallsRun) {
  set_num_threads(3);
  std::atomic<int> good{0};
  parallel_for(4, [&](int) { good += each_runs_once(5) ? 1 : 0; });
  EXPECT_EQ(good, 4);
}

TEST_F(Pool, ManyCallersAndChangingThreadCounts) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int n = 1; !stop; n = n % 7 + 1) set_num_threads(n);
  });
  std::atomic<int> bad{0};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 1000; ++repeat)
        bad += each_runs_once(get_num_threads()) ? 0 : 1;
    });
  }
  for (std::thread& caller : callers) caller.join();
  stop = true;
  changer.join();
  EXPECT_EQ(bad, 0);
}

TEST_F(Pool, RefusesThreadCountsOutOfRange) {
  set_num_threads(3);
  EXPECT_THROW(set_num_threads(0), std::invalid_argument);
  EXPECT_THROW(set_num_threads(-1), std::invalid_argument);
  EXPECT_THROW(set_num_threads(1LL << 40), std::invalid_argument);
  EXPECT_EQ(get_num_threads(), 3);
}

#if !defined(_WIN32)
// A fault whose signal is blocked would end the process without its handler.
TEST_F(Pool, WorkersBlockAllSignalsButThoseOfFaults) {
  set_num_threads(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> blocked_faults{-1}, blocked_others{0};
  for (int attempt = 0; attempt < 100 && blocked_faults < 0; ++attempt) {
    parallel_for(2, [&](int) {
      if (std::this_thread::get_id() != caller) {
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        const auto count = [&](std::initializer_list<int> signals) {
          int blocked = 0;
          for (const int signal : signals) blocked += sigismember(&mask, signal);
          return blocked;
        };
        blocked_others = count({SIGINT, SIGTERM, SIGUSR1, SIGPROF});
        blocked_faults = count({SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP});
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
  }
  EXPECT_EQ(blocked_faults, 0);
  EXPECT_EQ(blocked_others, 4);
}

#if !defined(DMLOPS_SANITIZED)  // the address sanitizer does not support cancellation
// A canceled thread ends after the call, since the workers read its stack.
TEST_F(Pool, CallersAreCanceledAfterTheirCall) {
  set_num_threads(4);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::atomic<int> begun{0}, ended{0};
    std::atomic<int>* const counts[] = {&begun, &ended};
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr,
                  [](void* argument) -> void* {
                    auto* const counted = static_cast<std::atomic<int>* const*>(argument);
                    for (;;) {
                      parallel_for(4, [counted](int i) {
                        ++*counted[0];
                        std::this_thread::sleep_for(std::chrono::microseconds(i * 500));
                        ++*counted[1];
                      });
                      pthread_testcancel();
                    }
                  },
                  const_cast<std::atomic<int>**>(counts)),
              0);
    while (begun < 4 + repeat) std::this_thread::yield();
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    EXPECT_EQ(begun, ended);
  }
}
#endif
#endif

// The thread sanitizer does not support fork with threads.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DMLOPS_NO_FORK 1
#endif
#endif
#if !defined(_WIN32) && !defined(__SANITIZE_THREAD__) && !defined(DMLOPS_NO_FORK)
TEST_F(Pool, ForksWhileOthersWork) {
  set_num_threads(3);
  ASSERT_TRUE(each_runs_once(3));
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) each_runs_once(3);
  });
  for (int repeat = 0; repeat < 20; ++repeat) {
    const pid_t child = fork();
    if (child == 0) _exit(each_runs_once(3) ? 0 : 1);
    EXPECT_TRUE(succeeds(child));
  }
  stop = true;
  worker.join();
  EXPECT_TRUE(each_runs_once(3));
}

// The child runs nested calls on its own, and must not return from the handler.
std::atomic<int> good_children{0};
void fork_and_wait(int) {
  const pid_t child = fork();
  if (child == 0) _exit(each_runs_once(3) ? 0 : 1);
  if (succeeds(child)) ++good_children;
}

TEST_F(Pool, ForksInASignalHandler) {
  set_num_threads(3);
  struct sigaction action = {}, before = {};
  action.sa_handler = fork_and_wait;
  ASSERT_EQ(sigaction(SIGTRAP, &action, &before), 0);
  good_children = 0;
  parallel_for(3, [](int i) {
    if (i == 0) raise(SIGTRAP);
  });
  EXPECT_EQ(good_children, 1);
  const auto caller = std::this_thread::get_id();
  for (int attempt = 0; attempt < 100 && good_children < 2; ++attempt) {
    std::atomic<bool> raised{false};
    parallel_for(3, [&](int) {
      if (std::this_thread::get_id() != caller && !raised.exchange(true)) raise(SIGTRAP);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
  }
  EXPECT_GE(good_children, 2);
  sigaction(SIGTRAP, &before, nullptr);
  EXPECT_TRUE(each_runs_once(3));
}
#endif

}  // namespace
}  // namespace dmlops
