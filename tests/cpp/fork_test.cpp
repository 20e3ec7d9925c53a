// A fork while another thread makes the process's first call: the child must not find partly
// initialized state. A separate program, since a process has one first call.
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "child_process.hpp"
#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"

namespace dmlops {
namespace {

// Enough for a call that is split over threads.
std::vector<float> some_values() { return std::vector<float>(std::size_t{1} << 17, 0.5f); }

bool clips(std::vector<float> values) {
  clip(values, Scalar(0.0), Scalar(0.25), {}, values);
  return values.front() == 0.25f && values.back() == 0.25f;
}

bool fork_during_the_first_call(std::chrono::nanoseconds delay) {
  std::vector<float> values = some_values();
  std::atomic<bool> begins{false};
  std::thread other([&] {
    begins = true;
    clips(std::move(values));
  });
  while (!begins) {
  }
  const auto end = std::chrono::steady_clock::now() + delay;
  while (std::chrono::steady_clock::now() < end) {
  }
  const pid_t child = fork();
  alarm(20);  // in parent and child: neither may deadlock
  if (child == 0) _exit(clips(some_values()) ? 0 : 1);
  other.join();
  return clips(some_values()) && succeeds(child);
}

TEST(Fork, DuringTheFirstCall) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    const pid_t first = fork();
    ASSERT_GE(first, 0);
    if (first == 0) {
      set_num_threads(3);
      _exit(fork_during_the_first_call(std::chrono::nanoseconds(attempt % 100 * 500)) ? 0 : 1);
    }
    ASSERT_TRUE(succeeds(first)) << attempt;
  }
}

}  // namespace
}  // namespace dmlops
