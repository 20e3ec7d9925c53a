// Builds the loop nests of reductions, and splits them into shards for the threads.
#include "traversal/reduction.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/insertion_sort.hpp"
#include "core/pool.hpp"
#include "traversal/policy.hpp"

namespace dmlops {
namespace {

constexpr std::int64_t kGroupOverhead = 8;  // of a group, in elements

struct ReducedDimension {
  std::int64_t size;
  std::int64_t strides[kReductionOperands];
};

bool continues(const ReducedDimension& outer, const ReducedDimension& inner) {
  for (int k = 0; k < kReductionOperands; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.size) return false;
  }
  return true;
}

// Adds a dimension outside of the others; dimensions that continue each other are merged.
void append(ReducedDimension* dimensions, int& rank, const ReducedDimension& added) {
  if (rank > 0 && continues(added, dimensions[rank - 1])) {
    dimensions[rank - 1].size *= added.size;
  } else {
    dimensions[rank++] = added;
  }
}

void set(ReductionNest& nest, int d, const ReducedDimension& dimension) {
  nest.sizes[d] = dimension.size;
  for (int k = 0; k < kReductionOperands; ++k) nest.strides[k][d] = dimension.strides[k];
}

// True if the operand has an element for each element of the input.
bool has_every_element(const Reduction& reduction, int operand) {
  const auto moves = [operand](const ReductionNest& nest) {
    const std::int64_t* const strides = nest.strides[operand];
    return std::find(strides, strides + nest.rank, 0) == strides + nest.rank;
  };
  return reduction.data[operand] != nullptr && moves(reduction.elements) && moves(reduction.kept);
}

// True if the groups are adjacent in an operand, and the elements of a group are not.
bool are_side_by_side(const Reduction& reduction, int operand, std::int64_t element_size) {
  const ReductionNest &kept = reduction.kept, &elements = reduction.elements;
  return kept.rank > 0 && kept.strides[operand][0] == element_size &&
         std::llabs(elements.strides[operand][elements.rank - 1]) > element_size;
}

// Returns the number of groups in a cache line if groups lie side by side in the input or the
// output, otherwise 1. Shards of such units are whole vectors, and share no line if rows are
// aligned.
std::int64_t groups_in_line(const Reduction& reduction, std::int64_t element_size) {
  const std::int64_t line = kLineBytes / element_size;
  const bool shared =
      are_side_by_side(reduction, 0, element_size) || are_side_by_side(reduction, 1, element_size);
  return shared && reduction.kept.sizes[0] >= line ? line : 1;
}

// True if each group is a dense row, in the input and in the output, of blocks enough for parts.
bool are_long_rows(const Reduction& reduction, std::int64_t elements, std::int64_t element_size) {
  const ReductionNest& nest = reduction.elements;
  return nest.rank == 1 && nest.strides[0][0] == element_size &&
         nest.strides[1][0] == element_size && elements >= 2 * kSumBlock;
}

// Computes few groups, up to `at_once` at a time, with the elements of each distributed over the
// threads, and sums of `sum_bytes`. Returns false, and computes nothing, if memory is exhausted.
bool run_in_parts(const Reduction& reduction, std::int64_t at_once, std::int64_t parts,
                  std::size_t sum_bytes, ReductionKernel kernel, const void* parameters) {
  alignas(kLineBytes) unsigned char sums[kPartSumBytes];
  std::unique_ptr<unsigned char[]> larger;
  if (sum_bytes > sizeof sums) {
    larger.reset(new (std::nothrow) unsigned char[sum_bytes]);
    if (larger == nullptr) return false;
  }
  Reduction block = reduction;
  block.part_sums = larger == nullptr ? sums : larger.get();
  const std::int64_t count = reduction.end;
  const std::int64_t size = reduction.kept.rank > 0 ? reduction.kept.sizes[0] : 1;
  for (block.first = 0; block.first < count; block.first = block.end) {
    block.end = block.first + std::min(at_once, size - block.first % size);
    block.parts = static_cast<int>(parts);
    for (block.stage = 0; block.stage < kPartStages; ++block.stage) {
      parallel_for(block.parts, [&](int i) {
        Reduction part = block;
        part.part = i;
        kernel(part, parameters);
      });
    }
    kernel(block, parameters);  // the stage after the results: the numbers of each group
  }
  return true;
}

}  // namespace

Reduction make_reduction(const ConstTensorView* const (&operands)[kReductionOperands],
                         unsigned int reduced) {
  Reduction reduction;
  const ConstTensorView& input = *operands[1];
  for (int k = 0; k < kReductionOperands; ++k) {
    // Kernels write outputs alone.
    if (operands[k] != nullptr)
      reduction.data[k] = const_cast<char*>(static_cast<const char*>(operands[k]->data));
  }
  ReducedDimension elements[kMaxRank], kept[kMaxRank], sorted[kMaxRank];
  int elements_rank = 0, kept_rank = 0, sorted_rank = 0;
  for (int d = input.rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    if (input.sizes[axis] == 1) continue;
    ReducedDimension dimension = {input.sizes[axis], {}};
    for (int k = 0; k < kReductionOperands; ++k) {
      const ConstTensorView* const operand = operands[k];
      dimension.strides[k] =
          operand == nullptr || operand->sizes[axis] == 1 ? 0 : operand->strides[axis];
    }
    if ((reduced >> d & 1u) != 0) {
      append(elements, elements_rank, dimension);
    } else {
      sorted[sorted_rank++] = dimension;
    }
  }
  if (elements_rank == 0) {
    const auto size = static_cast<std::int64_t>(element_size(input.type));
    elements[elements_rank++] = {1, {size, size}};
  }
  // Groups in the order that uses whole cache lines: of the input, which is read more than once,
  // unless the elements of a group are contiguous; then of the output. A broadcast dimension is
  // outermost, since it touches no further cache line.
  const bool by_output = std::llabs(elements[0].strides[1]) <= 16;
  const auto distance = [by_output](const ReducedDimension& d) {
    if (by_output) return std::llabs(d.strides[0]);
    return d.strides[1] == 0 ? INT64_MAX : std::llabs(d.strides[1]);
  };
  insertion_sort(sorted, sorted_rank, [&](const ReducedDimension& a, const ReducedDimension& b) {
    return distance(a) < distance(b);
  });
  for (int d = 0; d < sorted_rank; ++d) append(kept, kept_rank, sorted[d]);
  reduction.elements.rank = elements_rank;
  for (int d = 0; d < elements_rank; ++d)
    set(reduction.elements, d, elements[elements_rank - 1 - d]);
  reduction.kept.rank = kept_rank;
  reduction.end = 1;
  for (int d = 0; d < kept_rank; ++d) {
    set(reduction.kept, d, kept[d]);
    reduction.end *= kept[d].size;
  }
  return reduction;
}

void run(Reduction& reduction, std::int64_t element_size, const ReductionTraits& traits,
         ReductionKernel kernel, const void* parameters) {
  std::int64_t elements = 1;
  for (int d = 0; d < reduction.elements.rank; ++d) elements *= reduction.elements.sizes[d];
  // Further operands with an element for each element of the input add to the traffic.
  const std::int64_t bytes = 2 * element_size * elements;
  std::int64_t moved = bytes;
  for (int k = 2; k < kFirstGroupOperand; ++k) {
    if (has_every_element(reduction, k)) moved += bytes / 2;
  }
  const std::int64_t count = reduction.end;
  const bool side_by_side = are_side_by_side(reduction, 1, element_size);
  const bool packed = reduction.elements.strides[1][reduction.elements.rank - 1] != element_size &&
                      !(side_by_side && traits.has_parts);
  reduction.streaming = streams(count * moved, packed, reduction.data[0] == reduction.data[1]);
  // float16 elements take as long as float32 ones.
  const std::int64_t work = traits.weight * std::max<std::int64_t>(2 * element_size, 8);
  const std::int64_t wanted = shard_count(count * (elements + kGroupOverhead) * work);
  const std::int64_t line = groups_in_line(reduction, element_size);
  const std::int64_t unit = count >= 64 * wanted ? 64 : line;
  const auto shards = std::min(wanted, (count + unit - 1) / unit);
  const bool has_parts = traits.has_parts && reduction.stage == Reduction::kAllStages;
  const auto run_parts = [&](std::int64_t at_once, std::int64_t parts, std::size_t sum_bytes) {
    return run_in_parts(reduction, at_once, parts, sum_bytes, kernel, parameters);
  };
  const bool few = 2 * shards <= wanted;
  if (few && has_parts && side_by_side && line > 1 &&
      run_parts(kPartGroups, std::min<std::int64_t>(wanted, kMomentLanes), kPartSumBytes))
    return;
  if (few && traits.has_row_parts && are_long_rows(reduction, elements, element_size) &&
      run_parts(1, std::min({wanted, elements / kSumBlock, kMaxRowParts}),
                row_part_bytes(elements)))
    return;
  if (shards <= 1) return kernel(reduction, parameters);
  parallel_for(static_cast<int>(shards), [&](int i) {
    Reduction shard = reduction;
    shard.first = shard_begin(count, shards, i, unit);
    shard.end = shard_begin(count, shards, i + 1, unit);
    if (shard.first < shard.end) kernel(shard, parameters);
  });
}

}  // namespace dmlops
