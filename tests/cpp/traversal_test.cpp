// The canonical loop nest, and the decisions of the memory policy. They affect speed only,
// so that no result shows them.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "restored_settings.hpp"
#include "traversal/nest.hpp"
#include "traversal/shards.hpp"
#include "unread_tensors.hpp"

namespace dmlops {
namespace {

Nest nest_of(const TensorView& output, const TensorView& input) {
  const ConstTensorView source = input;
  return make_nest(output, &source, 1);
}

TEST(Nest, MergesDenseDimensions) {
  const TensorView dense = packed_tensor({2, 3, 4});
  const Nest nest = nest_of(dense, dense);
  EXPECT_EQ(nest.rank, 1);
  EXPECT_EQ(nest.sizes[0], 24);
  EXPECT_EQ(nest.strides[0][0], 4);
  EXPECT_EQ(nest.bytes_per_element, 8);
}

TEST(Nest, OneElementHasOneDimension) {
  for (const TensorView& one :
       {packed_tensor({}), strided_tensor({1}, {0}), strided_tensor({1, 1, 1}, {0, 8, -4})}) {
    const Nest nest = nest_of(one, one);
    EXPECT_EQ(nest.rank, 1) << one.rank;
    EXPECT_EQ(nest.sizes[0], 1) << one.rank;
    EXPECT_EQ(nest.strides[1][0], 4) << one.rank;
    EXPECT_EQ(element_count(nest), 1) << one.rank;
  }
}

TEST(Nest, FollowsTheOutputsMemory) {
  const TensorView columns = strided_tensor({5, 7}, {4, 20}), rows = packed_tensor({5, 7});
  const Nest nest = nest_of(columns, rows);
  EXPECT_EQ(nest.rank, 2);
  EXPECT_EQ(nest.sizes[0], 5);
  EXPECT_EQ(nest.sizes[1], 7);
  EXPECT_EQ(nest.strides[1][0], 28);
  EXPECT_EQ(nest.strides[1][1], 4);
}

TEST(Nest, ReversesNegativeStridesOfTheOutput) {
  const TensorView reversed = strided_tensor({6}, {-4}), forward = packed_tensor({6});
  const Nest nest = nest_of(reversed, forward);
  EXPECT_EQ(nest.strides[0][0], 4);
  EXPECT_EQ(nest.strides[1][0], -4);
  EXPECT_EQ(nest.data[0], static_cast<char*>(reversed.data) - 20);
  EXPECT_EQ(nest.data[1], static_cast<char*>(forward.data) + 20);
}

TEST(Nest, BroadcastInputsHaveStride0) {
  const TensorView output = packed_tensor({3, 4}), column = packed_tensor({3, 1});
  const Nest nest = nest_of(output, column);
  EXPECT_EQ(nest.rank, 2);
  EXPECT_EQ(nest.strides[1][0], 0);
  EXPECT_EQ(nest.strides[1][1], 4);
}

TEST(Policy, ShardsCoverTheWhole) {
  for (const std::int64_t size : {1, 7, 64, 1000}) {
    for (const std::int64_t unit : {1, 16}) {
      for (std::int64_t count = 1; count <= 5; ++count) {
        EXPECT_EQ(shard_begin(size, count, 0, unit), 0);
        EXPECT_EQ(shard_begin(size, count, count, unit), size);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t begin = shard_begin(size, count, i, unit);
          EXPECT_LE(begin, shard_begin(size, count, i + 1, unit));
          EXPECT_TRUE(begin == size || begin % unit == 0);
        }
      }
    }
  }
}

// Loops around rows of one byte, dense in memory from `data` on, the innermost first.
LoopNest loops(const std::vector<std::int64_t>& sizes, char* data) {
  LoopNest nest;
  nest.operands = 1;
  nest.length = nest.unit = nest.step[0] = 1;
  nest.data[0] = data;
  std::int64_t stride = 1;
  for (const std::int64_t size : sizes) {
    nest.loops[nest.rank++] = {size, {stride}};
    stride *= size;
  }
  return nest;
}

void count_visits(const LoopNest& nest, int d, char* data) {
  if (d < 0) {
    ++*data;
    return;
  }
  for (std::int64_t i = 0; i < nest.loops[d].size; ++i)
    count_visits(nest, d - 1, data + i * nest.loops[d].strides[0]);
}

TEST(Shards, VisitEachIterationOnce) {
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{1}, {7}, {2, 3}, {5, 1, 4}, {3, 2, 5, 4}}) {
    const std::size_t rank = sizes.size();
    for (std::size_t first = 0; first < rank; ++first) {
      std::int64_t rows = 1, iterations = 1;
      for (std::size_t d = 0; d < rank; ++d) {
        rows *= sizes[d];
        if (d >= first) iterations *= sizes[d];
      }
      for (std::int64_t shards = 1; shards <= iterations + 2; ++shards) {
        std::string visits(static_cast<std::size_t>(rows), '\0');
        const LoopNest nest = loops(sizes, visits.data());
        for (std::int64_t i = 0; i < shards; ++i) {
          std::int64_t in_shard = 0;
          const Split split = {static_cast<int>(first), nest.rank - 1, shards};
          for_each_box_of_shard(nest, split, i, [&](const LoopNest& box) {
            std::int64_t size = 1;
            for (int d = 0; d < box.rank; ++d) size *= box.loops[d].size;
            in_shard += size;
            count_visits(box, box.rank - 1, box.data[0]);
          });
          const std::int64_t unit = rows / iterations;
          EXPECT_GE(in_shard, iterations / shards * unit);
          EXPECT_LE(in_shard, (iterations + shards - 1) / shards * unit);
        }
        EXPECT_EQ(visits, std::string(visits.size(), '\1'));
      }
    }
  }
}

TEST(Shards, MoveTheOffsetsOfRows) {
  const std::int64_t offsets[] = {0, 5, 1, 7};
  char memory[4];
  LoopNest nest = loops({4}, memory);
  nest.row_offsets[0] = offsets;
  for_each_box_of_shard(nest, {0, 0, 2}, 1, [&](const LoopNest& box) {
    EXPECT_EQ(box.row_offsets[0], offsets + 2);
    EXPECT_EQ(box.loops[0].size, 2);
  });
}

TEST(Shards, AreElementsOfEachRow) {
  char memory[200] = {};
  LoopNest nest = loops({2}, memory);
  nest.length = 100;
  nest.unit = 16;
  nest.loops[0].strides[0] = 100;
  for (std::int64_t i = 0; i < 3; ++i) {
    for_each_box_of_shard(nest, {0, -1, 3}, i, [&](const LoopNest& box) {
      EXPECT_EQ((box.data[0] - memory) % 16, 0);
      for (std::int64_t row = 0; row < 2; ++row) {
        for (std::int64_t j = 0; j < box.length; ++j) ++box.data[0][row * 100 + j];
      }
    });
  }
  EXPECT_EQ(std::string(memory, sizeof memory), std::string(sizeof memory, '\1'));
}

// Returns the result of choose_split as text.
std::string split_of(const LoopNest& nest, std::int64_t wanted, std::int64_t threads) {
  const Split split = choose_split(nest, wanted, threads);
  const std::string shards = std::to_string(split.shards) + " shards of ";
  if (!split.has_loops()) return shards + "elements";
  return shards + "loops " + std::to_string(split.first) + " to " + std::to_string(split.last);
}

TEST(Shards, AreNearlyEqual) {
  char memory[1];
  LoopNest nest = loops({100, 16}, memory);
  EXPECT_EQ(split_of(nest, 16, 16), "16 shards of loops 1 to 1");
  EXPECT_EQ(split_of(loops({13, 18, 9}, memory), 16, 16), "15 shards of loops 1 to 2");
  EXPECT_EQ(split_of(loops({13, 5}, memory), 16, 16), "13 shards of loops 0 to 1");
  EXPECT_EQ(split_of(loops({5}, memory), 4, 16), "5 shards of loops 0 to 0");
  nest = loops({3}, memory);
  EXPECT_EQ(split_of(nest, 16, 16), "16 shards of loops 0 to 0");  // a row cannot be split
  nest.length = 1000;
  EXPECT_EQ(split_of(nest, 16, 16), "16 shards of elements");
  nest = loops({}, memory);
  nest.length = 1 << 20;
  EXPECT_EQ(split_of(nest, 2, 2), "2 shards of elements");
}

TEST(Shards, AreFarApart) {
  char memory[1];
  LoopNest nest = loops({684, 12}, memory);
  EXPECT_EQ(split_of(nest, 8, 8), "6 shards of loops 1 to 1");
  std::swap(nest.loops[0].strides[0], nest.loops[1].strides[0]);
  EXPECT_EQ(split_of(nest, 8, 8), "8 shards of loops 0 to 0");
  nest.loops[0].strides[0] *= -1;
  EXPECT_EQ(split_of(nest, 8, 8), "8 shards of loops 0 to 0");
  // A transposition of 16683 rows of 45 elements: the input's rows stay whole.
  nest = loops({45}, memory);
  nest.operands = 2;
  nest.length = 16683;
  nest.unit = 16;
  nest.data[1] = memory;
  nest.loops[0].strides[0] = 66732;
  nest.loops[0].strides[1] = nest.step[0] = 4;
  nest.step[1] = 540;
  EXPECT_EQ(split_of(nest, 16, 16), "16 shards of elements");
  const std::int64_t offsets[] = {0, 4096};  // of the columns in the input
  nest.row_offsets[1] = offsets;
  EXPECT_EQ(split_of(nest, 16, 16), "15 shards of loops 0 to 0");
}

TEST(Policy, SplitsFromTheThreshold) {
  const RestoredSettings restored;
  set_num_threads(3);
  set_split_threshold(1000);
  EXPECT_EQ(shard_count(999), 1);
  EXPECT_EQ(shard_count(1000), 3);
}

struct Streamed {
  const char* what;
  TensorView output, input;
  std::int64_t threshold;  // the largest from which the output is streamed
};

TEST(Policy, NonTemporalStores) {
  const RestoredSettings restored;
  // 64 x 96 elements of 4 bytes: 48 KiB of traffic. As one matrix of several: 4 x 16 x 96.
  constexpr std::int64_t kTraffic = std::int64_t{2} * 64 * 96 * 4;
  const Streamed cases[] = {
      {"dense", packed_tensor({64, 96}), packed_tensor({64, 96}), kTraffic},
      {"every second element", packed_tensor({64, 96}), strided_tensor({64, 96}, {1024, 8}),
       2 * kTraffic},
      {"transposed", packed_tensor({64, 96}), strided_tensor({64, 96}, {4, 256}), 4 * kTraffic},
      {"small matrices transposed", packed_tensor({4, 16, 96}),
       strided_tensor({4, 16, 96}, {6144, 4, 64}), 2 * kTraffic},
      {"broadcast column", packed_tensor({64, 96}), strided_tensor({64, 96}, {4, 0}),
       kTraffic / 2 + 64 * 4},
      {"broadcast row", packed_tensor({64, 96}), strided_tensor({64, 96}, {0, 4}),
       kTraffic / 2 + 96 * 4},
      {"padded input", packed_tensor({64, 96}), strided_tensor({64, 96}, {512, 4}), kTraffic},
  };
  for (const Streamed& example : cases) {
    const Nest nest = nest_of(example.output, example.input);
    char* const data[] = {nest.data[0], nest.data[1] + 64};
    set_non_temporal_threshold(example.threshold);
    EXPECT_TRUE(streams(nest, data)) << example.what;
    set_non_temporal_threshold(example.threshold + 4);
    EXPECT_FALSE(streams(nest, data)) << example.what;
  }
}

TEST(Policy, RegularStoresInPlaceAndToStridedOutputs) {
  const RestoredSettings restored;
  set_non_temporal_threshold(0);
  const TensorView dense = packed_tensor({64}), every_second = strided_tensor({64}, {8});
  const Nest nest = nest_of(dense, dense), strided = nest_of(every_second, dense);
  char* const data = nest.data[0];
  char* const apart[] = {data, data + 64};
  char* const in_place[] = {data, data};
  char* const misaligned[] = {data + 2, data + 64};
  EXPECT_TRUE(streams(nest, apart));
  EXPECT_FALSE(streams(nest, in_place));
  EXPECT_FALSE(streams(nest, misaligned));
  EXPECT_FALSE(streams(strided, apart));
}

}  // namespace
}  // namespace dmlops
