// The check of the calling thread's stack.
#include "core/stack.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <thread>

#include "dmlops/error.hpp"

#if defined(__linux__)
#include <sys/resource.h>

namespace dmlops {
namespace {

// The pages that the main thread has not touched yet count.
TEST(Stack, OfTheMainThreadGrowsToItsLimit) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
  if (limit.rlim_cur == RLIM_INFINITY) GTEST_SKIP() << "the stack has no limit";
  const auto size = static_cast<std::size_t>(limit.rlim_cur);
  EXPECT_NO_THROW(require_stack(size / 2));
  EXPECT_THROW(require_stack(size), Error);
}

TEST(Stack, OfAnotherThreadIsItsOwn) {
  std::thread([] {
    EXPECT_NO_THROW(require_stack(4096));
    EXPECT_THROW(require_stack(std::size_t{1} << 40), Error);
  }).join();
}

}  // namespace
}  // namespace dmlops
#endif
