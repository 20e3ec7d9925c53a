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

// The statistics of an empty input: one output is small, the other is split among threads.
TEST(Environment, IsCheckedBeforeEmptyGroupsAreWritten) {
  const std::vector<float> x(30000, 1.0f);
  std::vector<float> mean(30000, 7.0f), variance(60000, 7.0f);
  const ConstTensorView input(x.data(), {0, 30000}), parameter(x.data(), {1, 30000});
  EXPECT_THROW(batch_normalization_training(
                   {input, parameter, parameter, {}}, 0, {},
                   {TensorView(mean.data(), {0, 30000}), TensorView(mean.data(), {1, 30000}),
                    TensorView(variance.data(), {1, 30000}, ElementStrides{0, 2})}),
               Error);
  EXPECT_EQ(mean, std::vector<float>(30000, 7.0f));
  EXPECT_EQ(variance, std::vector<float>(60000, 7.0f));
}

}  // namespace
}  // namespace dmlops
