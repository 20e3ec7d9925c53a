// The layouts that loop nests get, on random strides: together, the rows have each element once, at
// the addresses of the nest, and every member of the enumeration is reached.
#include "traversal/layout.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "dmlops/runtime.hpp"
#include "restored_settings.hpp"
#include "traversal/shortest_row.hpp"
#include "unread_tensors.hpp"

namespace dmlops {
namespace {

using Offsets = std::array<std::int64_t, kMaxOperands>;  // of an element in each operand

// The elements and layouts that a kernel was given.
struct Seen {
  std::vector<Offsets> elements;
  std::set<std::pair<int, Layout>> layouts;  // by operand
  std::set<int> row_offsets;                 // operands
  bool runs = false, outer_loops = false;
  std::int64_t longest = 0;  // elements of rows in a call
};

struct Recorder {
  char* const* data;
  Seen* seen;
  std::mutex* mutex;
};

// A kernel that records the offsets of its elements.
void record(const Rows& rows, const void* parameters) {
  const Recorder& recorder = *static_cast<const Recorder*>(parameters);
  Seen& seen = *recorder.seen;
  const std::lock_guard<std::mutex> lock(*recorder.mutex);
  std::int64_t iterations = 1;
  for (int d = 0; d < rows.outer_rank; ++d) iterations *= rows.outer[d].size;
  const auto offset = [&](int k, std::int64_t iteration, std::int64_t row, std::int64_t i) {
    std::int64_t result = rows.data[k] - recorder.data[k];
    for (int d = 0; d < rows.outer_rank; iteration /= rows.outer[d++].size)
      result += iteration % rows.outer[d].size * rows.outer[d].strides[k];
    result += rows.row_offsets[k] != nullptr ? rows.row_offsets[k][row] : row * rows.pitch[k];
    if (rows.offsets[k] == nullptr) return result + i * rows.step[k];
    return result + rows.offsets[k][i / rows.run[k]] + i % rows.run[k] * rows.step[k];
  };
  for (std::int64_t iteration = 0; iteration < iterations; ++iteration) {
    for (std::int64_t row = 0; row < rows.count; ++row) {
      for (std::int64_t i = 0; i < rows.length; ++i) {
        Offsets element = {};
        for (int k = 0; k < rows.operands; ++k)
          element[static_cast<std::size_t>(k)] = offset(k, iteration, row, i);
        seen.elements.push_back(element);
      }
    }
  }
  seen.longest = std::max(seen.longest, rows.length * rows.count);
  for (int k = 0; k < rows.operands; ++k) {
    seen.layouts.emplace(k, rows.layout[k]);
    seen.runs = seen.runs || (rows.offsets[k] != nullptr && rows.run[k] > 1);
    if (rows.row_offsets[k] != nullptr) seen.row_offsets.insert(k);
  }
  seen.outer_loops = seen.outer_loops || rows.outer_rank > 0;
}

// Draws strides that are permuted, stepped, reversed, padded or broadcast.
class NestDraw {
 public:
  explicit NestDraw(unsigned int seed) : random_(seed) {}

  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  TensorView tensor(const IntegerList& sizes, bool is_output) {
    TensorView view = packed_tensor(sizes);
    std::vector<std::size_t> order(static_cast<std::size_t>(view.rank));
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (integer(0, 2) > 0) std::shuffle(order.begin(), order.end(), random_);
    std::int64_t step = 4;
    for (const std::size_t d : order) {
      if (integer(0, 3) == 0) step *= integer(2, 5);
      view.strides[d] = integer(0, 4) == 0 ? -step : step;
      if (!is_output && integer(0, 5) == 0) view.strides[d] = 0;
      step = step * view.sizes[d] + (integer(0, 3) == 0 ? 64 : 0);
    }
    return view;
  }

 private:
  std::mt19937 random_;
};

// Expects each element of a nest once, and returns what the kernel was given.
Seen check_elements(const Nest& nest, std::int64_t shards) {
  std::vector<Offsets> expected;
  for (std::int64_t i = 0; i < element_count(nest); ++i) {
    Offsets element = {};
    for (int k = 0; k < nest.operands; ++k) {
      std::int64_t position = i;
      for (int d = 0; d < nest.rank; position /= nest.sizes[d++])
        element[static_cast<std::size_t>(k)] += position % nest.sizes[d] * nest.strides[k][d];
    }
    expected.push_back(element);
  }
  std::sort(expected.begin(), expected.end());
  Seen seen;
  std::mutex mutex;
  const Recorder recorder = {nest.data, &seen, &mutex};
  LoopLayout(nest, nest.data, false).run(shards, &record, &recorder);
  std::sort(seen.elements.begin(), seen.elements.end());
  EXPECT_EQ(seen.elements, expected) << shards << " shards";
  return seen;
}

TEST(LoopLayout, TransposesEachInputInEitherDirection) {
  const TensorView dense = packed_tensor({20, 30});
  for (const std::int64_t step : {4, -4, 8, -16}) {
    const TensorView across = strided_tensor({20, 30}, {step, -20 * step});
    for (const int k : {1, 2}) {
      ConstTensorView inputs[] = {dense, dense};
      inputs[k - 1] = across;
      const Nest nest = make_nest(dense, inputs, 2);
      EXPECT_EQ(check_elements(nest, 1).layouts.count({k, Layout::transposed}), 1u) << step;
    }
  }
}

// Many tiles of 110 elements cost more than their elements one by one.
TEST(LoopLayout, TransposesTilesOfManyElements) {
  const auto layouts_of = [](std::int64_t rows, std::int64_t others) {
    const IntegerList sizes = {others, rows, 10};
    const ConstTensorView x = strided_tensor(sizes, {80 * rows, 4, 4 * rows});
    return check_elements(make_nest(packed_tensor(sizes), &x, 1), 1).layouts;
  };
  const auto transposed = std::make_pair(1, Layout::transposed);
  EXPECT_EQ(layouts_of(11, 9).count(transposed), 0u);
  EXPECT_EQ(layouts_of(11, 1).count(transposed), 1u);
  EXPECT_EQ(layouts_of(26, 9).count(transposed), 1u);
}

// Rows of 2 elements with gaps between them are extended instead.
TEST(LoopLayout, DoesNotTransposeRowsOfSeveralElements) {
  const IntegerList sizes = {12, 2, 12, 2};
  const ConstTensorView x = strided_tensor(sizes, {48, 1152, 4, 576});
  const Nest nest = make_nest(packed_tensor(sizes), &x, 1);
  EXPECT_EQ(check_elements(nest, 1).layouts.count({1, Layout::transposed}), 0u);
}

// The inner dimension has 5 rows, the next one 32.
TEST(LoopLayout, BlocksHaveSeveralRows) {
  const IntegerList sizes = {7, 32, 5, 40};
  const ConstTensorView inputs[] = {strided_tensor(sizes, {640, 20, 4, 0}),
                                    strided_tensor(sizes, {160, 1120, 35840, 4})};
  const Nest nest = make_nest(packed_tensor(sizes), inputs, 2);
  EXPECT_GE(check_elements(nest, 1).longest, 40 * 32);
}

// 4 rows of 16 elements, and 100 further ones that do not continue them in the input. The other
// inputs are equal in all rows.
TEST(LoopLayout, BlocksHaveRowsOfSeveralDimensions) {
  const IntegerList sizes = {100, 4, 16};
  std::vector<ConstTensorView> inputs(5, strided_tensor(sizes, {0, 0, 4}));
  inputs[0] = strided_tensor(sizes, {1060, 212, 12});
  const Nest nest = make_nest(packed_tensor(sizes), inputs.data(), 5);
  const Seen seen = check_elements(nest, 1);
  EXPECT_EQ(seen.row_offsets, std::set<int>{1});
  EXPECT_GE(seen.longest, kBlockBytes / 4);
}

// Rows of 1,200 bytes are not joined, so that those of the largest dimension share a packed input.
TEST(LoopLayout, SharedInputsArePackedForManyRows) {
  const IntegerList sizes = {1000, 2, 300};
  const ConstTensorView inputs[] = {strided_tensor(sizes, {3600, 1200, 4}),
                                    strided_tensor(sizes, {0, 0, 8})};
  const Nest nest = make_nest(packed_tensor(sizes), inputs, 2);
  EXPECT_EQ(check_elements(nest, 1).longest, 300 * 1000);
}

// Shorter rows are extended instead, and gathered.
TEST(LoopLayout, TransposesTheFirstOfSeveralInputs) {
  for (const std::int64_t length : {8, 30}) {
    const IntegerList sizes = {20, length};
    std::vector<ConstTensorView> inputs(5, strided_tensor(sizes, {0, 4}));
    inputs[0] = strided_tensor(sizes, {4, 80});
    const Nest nest = make_nest(packed_tensor(sizes), inputs.data(), 5);
    EXPECT_EQ(check_elements(nest, 1).layouts.count({1, Layout::transposed}), length == 30);
  }
}

// Short contiguous rows are extended, but not over a dimension along which many are equal.
TEST(LoopLayout, ExtendsShortContiguousRows) {
  const auto is_extended = [](std::int64_t length, std::int64_t equal) {
    const IntegerList sizes = {300, equal, 2, length};
    const ConstTensorView x = strided_tensor(sizes, {400, 0, 100, 4});
    const Nest nest = make_nest(packed_tensor(sizes), &x, 1);
    const Seen seen = check_elements(nest, 1);
    const bool computed_once = seen.longest == 2 * length * equal;
    return std::pair(seen.layouts.count({1, Layout::gathered}) > 0, computed_once);
  };
  EXPECT_EQ(is_extended(15, 64), std::pair(true, true));
  EXPECT_EQ(is_extended(15, 3), std::pair(true, false));
  EXPECT_EQ(is_extended(16, 64).first, false);
}

// Beyond the caches, six near rows in place are a block rather than thousands of distant ones.
TEST(LoopLayout, CountsRowsInTheOrderOfMemory) {
  const auto longest = [](std::int64_t size) {
    const IntegerList sizes = {size, 6, 35};
    const ConstTensorView x = strided_tensor(sizes, {8 * 180, 180, 4});
    const Nest nest = make_nest(packed_tensor(sizes), &x, 1);
    std::int64_t rows = 0;
    LoopLayout layout(nest, nest.data, false);
    layout.run(
        1,
        [](const Rows& given, const void* result) {
          *static_cast<std::int64_t*>(const_cast<void*>(result)) = given.count;
        },
        &rows);
    return rows;
  };
  EXPECT_EQ(longest(100), 100);
  EXPECT_EQ(longest(2000), 6);
}

// Each of many shards has few of the 32 rows that would share packed parameters.
TEST(LoopLayout, DoesNotExtendRowsSharedByFewPerShard) {
  const IntegerList sizes = {32, 256, 36};
  const TensorView dense = packed_tensor(sizes, DataType::float16);
  std::vector<ConstTensorView> inputs(5, strided_tensor(sizes, {0, 2, 0}, DataType::float16));
  inputs[0] = dense;
  const Nest nest = make_nest(dense, inputs.data(), 5);
  const RestoredSettings restored;
  set_num_threads(1);
  EXPECT_GT(shortest_row(nest, 1024), 36);
  set_num_threads(16);
  EXPECT_LE(shortest_row(nest, 1024), 36);
}

// The output's rows or the input's columns are short, and continued by 745 elements.
TEST(LoopLayout, SplitsLongDimensionsOfATransposition) {
  const IntegerList sizes = {9, 745, 3};
  const TensorView dense = packed_tensor(sizes);
  const TensorView tensors[][2] = {{dense, strided_tensor(sizes, {4, 36, 745 * 36})},
                                   {strided_tensor(sizes, {4, 40, 745 * 40}), dense}};
  for (const auto& [output, input] : tensors) {
    const ConstTensorView x = input;
    const Nest nest = make_nest(output, &x, 1);
    for (const std::int64_t shards : {1, 3}) {
      const Seen seen = check_elements(nest, shards);
      EXPECT_TRUE(seen.longest >= 9 * 32) << seen.longest;
    }
  }
}

TEST(LoopLayout, EveryElementOnceAndEveryMember) {
  Seen all;
  for (unsigned int seed = 0; seed < 1500 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    NestDraw draw(seed);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(draw.integer(1, 5)));
    std::int64_t left = 4096;
    for (std::int64_t& size : sizes) {
      size = draw.integer(1, std::min<std::int64_t>(left, draw.integer(0, 3) == 0 ? 2000 : 20));
      left = std::max<std::int64_t>(left / size, 1);
    }
    const auto inputs = std::array<int, 3>{1, 2, 5}[seed % 3];
    std::vector<ConstTensorView> operands;
    for (int k = 0; k < inputs; ++k) operands.emplace_back(draw.tensor(sizes, false));
    const Nest nest = make_nest(draw.tensor(sizes, true), operands.data(), inputs);
    for (const std::int64_t shards : {1, 3}) {
      Seen seen = check_elements(nest, shards);
      if (inputs < 5) all.layouts.merge(seen.layouts);
      all.runs = all.runs || seen.runs;
      all.row_offsets.merge(seen.row_offsets);
      all.outer_loops = all.outer_loops || seen.outer_loops;
    }
  }
  // An output is neither broadcast nor the side of a transposition that is packed.
  const std::set<std::pair<int, Layout>> every = {
      {0, Layout::in_place},   {0, Layout::strided},   {0, Layout::gathered},
      {1, Layout::in_place},   {1, Layout::broadcast}, {1, Layout::strided},
      {1, Layout::transposed}, {1, Layout::gathered},  {2, Layout::in_place},
      {2, Layout::broadcast},  {2, Layout::strided},   {2, Layout::transposed},
      {2, Layout::gathered}};
  EXPECT_EQ(all.layouts, every);
  EXPECT_EQ(all.row_offsets, (std::set<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(all.runs && all.outer_loops);
}

}  // namespace
}  // namespace dmlops
