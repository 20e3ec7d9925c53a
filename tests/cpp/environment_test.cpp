// An invalid environment variable, which CTest sets, is refused before an operator writes.
#include <gtest/gtest.h>
#include <vector>

#include "dmlops/operators.hpp"

namespace dmlops {
namespace {

// softmax of a broadcast input writes twice: the results of one row, then their copies.
TEST(Environment, IsCheckedBeforeAnOperatorWrites) {
  const std::vector<float> row(64, 1.0f), unwritten(64 * 4096, 7.0f);
  std::vector<float> y = unwritten;
  const ConstTensorView input(row.data(), {4096, 64}, ByteStrides{0, 4});
  EXPECT_THROW(softmax(input, {1}, {y.data(), {4096, 64}}), Error);
  EXPECT_EQ(y, unwritten);
}

}  // namespace
}  // namespace dmlops
