// Builds the loop nests of reductions, and splits them into shards for the threads.
#include "traversal/reduction.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/insertion_sort.hpp"
#include "core/pool.hpp"
#include "traversal/dimension.hpp"
#include "traversal/policy.hpp"

namespace dmlops {
namespace {

using ReducedDimension = Dimension<kReductionOperands>;

// True if the operand has different elements in a group.
bool varies(const ConstTensorView* operand, unsigned int reduced) {
  for (int d = 0; operand != nullptr && d < operand->rank; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    if ((reduced >> d & 1u) != 0 && operand->sizes[axis] > 1 && operand->strides[axis] != 0)
      return true;
  }
  return false;
}

// True if most of the operands that vary in groups go backwards along a dimension; of as many,
// those that the input belongs to, which is read more than once.
bool goes_backwards(const ReducedDimension& dimension,
                    const ConstTensorView* const (&operands)[kReductionOperands],
                    unsigned int reduced) {
  int balance = 0;
  for (int k = 0; k < kFirstGroupOperand; ++k) {
    const std::int64_t stride = dimension.strides[k];
    const int weight = k == 1 ? 3 : 2;
    if (stride != 0 && varies(operands[k], reduced)) balance += stride > 0 ? weight : -weight;
  }
  return balance < 0;
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

// Returns the number of elements of each column that groups are split into, or 0 if they are not
// split. Their outermost dimension must be contiguous in the operands that vary. Blocks of sums
// that begin in one column and end in the next one are read twice, which single groups gain from
// only if columns are long. Columns shorter than a block are added up along rows: then only results
// gain, and only those of groups of few columns.
std::int64_t split_rows(const PlannedReduction& planned, std::int64_t element_size) {
  constexpr std::int64_t kFewest = 16, kFewestOfOne = 32, kMostOfShort = 128;  // columns
  constexpr std::int64_t kShortest = 128, kShortestOfOne = 4 * kSumBlock;      // rows
  const ReductionNest &kept = planned.kept, &nest = planned.elements;
  for (int o = 0; o < kFirstGroupOperand; ++o) {
    const std::int64_t* const strides = nest.strides[o];
    const bool varies = std::any_of(strides, strides + nest.rank, [](auto s) { return s != 0; });
    if (varies ? strides[0] != element_size : o < 2) return 0;
  }
  std::int64_t rows = 1;
  for (int d = 1; d < nest.rank; ++d) rows *= nest.sizes[d];
  std::int64_t columns = nest.sizes[0], shortest = kShortestOfOne, fewest = kFewestOfOne;
  if (kept.rank > 0 && kept.strides[1][0] == columns * element_size) {
    shortest = columns <= kMostOfShort ? kShortest : kSumBlock;
    fewest = kFewest;
    columns *= kept.sizes[0];
  }
  return rows >= shortest && columns >= fewest ? rows : 0;
}

// Returns the number of groups in a cache line, at most those of the innermost dimension, where
// groups lie side by side in the input or the output; otherwise 1. Shards of units that fill a line
// are whole vectors, and share no line if rows are aligned.
std::int64_t groups_in_line(const Reduction& reduction, std::int64_t element_size) {
  if (reduction.split) {
    const std::int64_t bytes = reduction.elements.sizes[0] * element_size, power = bytes & -bytes;
    const std::int64_t most = reduction.kept.rank > 0 ? reduction.kept.sizes[0] : 1;
    return std::clamp<std::int64_t>(kLineBytes / power, 1, most);
  }
  const bool shared =
      are_side_by_side(reduction, 0, element_size) || are_side_by_side(reduction, 1, element_size);
  return shared ? std::min(kLineBytes / element_size, reduction.kept.sizes[0]) : 1;
}

// True if each group is a dense row, in the input and in the output.
bool are_dense_rows(const Reduction& reduction, std::int64_t element_size) {
  const ReductionNest& nest = reduction.elements;
  return nest.rank == 1 && nest.strides[0][0] == element_size && nest.strides[1][0] == element_size;
}

// Returns the number of groups whose parts are computed together.
std::int64_t groups_at_once(const Reduction& groups, const ReductionTraits& traits) {
  if (!traits.has_lanes) return 1;
  return std::min<std::int64_t>(groups.by_lanes ? groups.kept.sizes[0] : groups.end, kPartGroups);
}

// Returns the number of split groups that one of `shards` threads computes together: 1 MiB, so that
// results find the input in L2, but at least the columns that memory needs to be read efficiently,
// unless their sums would take much memory.
std::int64_t split_groups_at_once(const Reduction& groups, std::int64_t rows, std::int64_t shards,
                                  std::int64_t element_size, const ReductionTraits& traits) {
  constexpr std::int64_t kBytes = 1 << 20, kFewestAtOnce = 128, kMostAtOnce = 512;
  constexpr std::size_t kMostSumBytes = 32 << 20;
  const std::int64_t width = groups.elements.sizes[0], unit = groups_in_line(groups, element_size),
                     columns =
                         std::clamp(kBytes / (rows * element_size), kFewestAtOnce, kMostAtOnce),
                     largest = (groups.end + shards - 1) / shards + unit;  // of the shards, at most
  const std::size_t bytes = part_sum_bytes(1, width * rows, traits.part_lanes);
  const auto with_sums = static_cast<std::int64_t>(kMostSumBytes / bytes);
  const std::int64_t at_once = std::min({columns / width, with_sums, largest, kPartGroups});
  return std::max<std::int64_t>(at_once < unit ? at_once : at_once / unit * unit, 1);
}

// Memory for the sums of parts, aligned to cache lines.
class PartSums {
 public:
  PartSums(std::size_t bytes, std::int64_t count) : bytes_((bytes / kLineBytes + 1) * kLineBytes) {
    const std::size_t all = static_cast<std::size_t>(count) * bytes_;
    if (all > sizeof small_) larger_.reset(new (std::nothrow) unsigned char[all + kLineBytes]);
    memory_ = all <= sizeof small_ ? small_ : larger_.get();
  }

  bool is_exhausted() const { return memory_ == nullptr; }
  void* operator[](int i) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_);
    return memory_ + (kLineBytes - address % kLineBytes) % kLineBytes +
           static_cast<std::size_t>(i) * bytes_;
  }

 private:
  const std::size_t bytes_;
  unsigned char* memory_;
  std::unique_ptr<unsigned char[]> larger_;
  alignas(kLineBytes) unsigned char small_[kPartSumBytes + kLineBytes];
};

// Calls the kernel for the groups [first, end), up to `at_once` at a time.
void run_range(Reduction groups, std::int64_t first, std::int64_t end, std::int64_t at_once,
               ReductionKernel kernel, const void* parameters) {
  // A call has groups of one run of the innermost dimension if parts are by lanes, or if a single
  // thread computes split groups.
  const bool of_run =
      (groups.by_lanes || (groups.split && groups.parts == 1)) && groups.kept.rank > 0;
  const std::int64_t size = of_run ? groups.kept.sizes[0] : groups.end;
  groups.parallel_for = parallel_for;
  for (groups.first = first; groups.first < end; groups.first = groups.end) {
    groups.end = std::min(end, groups.first + std::min(at_once, size - groups.first % size));
    kernel(groups, parameters);
  }
}

// Computes few groups in up to `wanted` parts. Returns false, and computes nothing, if the groups
// are too short for parts, or if memory is exhausted.
bool run_in_parts(Reduction groups, std::int64_t elements, std::int64_t at_once,
                  std::int64_t wanted, const ReductionTraits& traits, ReductionKernel kernel,
                  const void* parameters) {
  std::size_t bytes = kPartSumBytes;
  if (groups.by_lanes) {
    wanted = std::min<std::int64_t>(wanted, kMomentLanes);
  } else {
    const std::int64_t most = at_once * elements / (traits.shortest_part * kSumBlock);
    wanted = std::min<std::int64_t>({wanted, most, kMaxParts});
    if (elements < 2 * kSumBlock || wanted < 2) return false;
    bytes = part_sum_bytes(at_once, elements, traits.part_lanes);
  }
  const PartSums sums(bytes, 1);
  if (sums.is_exhausted()) return false;
  groups.part_sums = sums[0];
  groups.parts = static_cast<int>(wanted);
  run_range(groups, 0, groups.end, at_once, kernel, parameters);
  return true;
}

// Computes groups that are split in shards. Returns false, and computes nothing, if memory is
// exhausted.
bool run_split(const Reduction& groups, std::int64_t elements, std::int64_t at_once,
               std::int64_t shards, std::int64_t unit, const ReductionTraits& traits,
               ReductionKernel kernel, const void* parameters) {
  const PartSums sums(part_sum_bytes(at_once, elements, traits.part_lanes), shards);
  if (sums.is_exhausted()) return false;
  parallel_for(static_cast<int>(shards), [&](int i) {
    Reduction shard = groups;
    shard.part_sums = sums[i];
    run_range(shard, shard_begin(groups.end, shards, i, unit),
              shard_begin(groups.end, shards, i + 1, unit), at_once, kernel, parameters);
  });
  return true;
}

}  // namespace

std::int64_t group_work(std::int64_t elements, const ReductionTraits& traits) {
  constexpr std::int64_t kGroupOverhead = 8;  // in elements
  return (elements + kGroupOverhead) * traits.weight * kReducedBytes;
}

PlannedReduction::PlannedReduction(const ConstTensorView* const (&operands)[kReductionOperands],
                                   unsigned int reduced) {
  const ConstTensorView& input = *operands[1];
  for (int k = 0; k < kReductionOperands; ++k) {
    // Kernels write outputs alone.
    if (operands[k] != nullptr)
      data[k] = const_cast<char*>(static_cast<const char*>(operands[k]->data));
  }
  ReducedDimension inner[kMaxRank], outer[kMaxRank], sorted[kMaxRank];
  int sorted_rank = 0;
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
      append(inner, elements.rank, dimension);
      continue;
    }
    const bool reversed = goes_backwards(dimension, operands, reduced);
    for (int k = 0; reversed && k < kReductionOperands; ++k) {
      offsets[k] += (dimension.size - 1) * dimension.strides[k];
      dimension.strides[k] = -dimension.strides[k];
    }
    sorted[sorted_rank++] = dimension;
  }
  if (elements.rank == 0) {
    const auto size = static_cast<std::int64_t>(element_size(input.type));
    inner[elements.rank++] = {1, {size, size}};
  }
  // Groups in the order that uses whole cache lines: of the input, which is read more than once,
  // unless the elements of a group are contiguous; then of the output. A broadcast dimension is
  // outermost, since it touches no further cache line.
  const bool by_output = std::llabs(inner[0].strides[1]) <= 16;
  const auto distance = [by_output](const ReducedDimension& d) {
    if (by_output) return std::llabs(d.strides[0]);
    return d.strides[1] == 0 ? INT64_MAX : std::llabs(d.strides[1]);
  };
  insertion_sort(sorted, sorted_rank, [&](const ReducedDimension& a, const ReducedDimension& b) {
    return distance(a) < distance(b);
  });
  for (int d = 0; d < sorted_rank; ++d) append(outer, kept.rank, sorted[d]);
  for (int d = 0; d < elements.rank; ++d) set(elements, d, inner[elements.rank - 1 - d]);
  for (int d = 0; d < kept.rank; ++d) {
    set(kept, d, outer[d]);
    groups *= outer[d].size;
  }
  if (elements.rank > 1)
    split = split_rows(*this, static_cast<std::int64_t>(element_size(input.type)));
}

void run(const PlannedReduction& planned, char* const* data, std::int64_t element_size,
         const ReductionTraits& traits, ReductionKernel kernel, const void* parameters) {
  Reduction reduction{planned.elements, planned.kept};
  for (int k = 0; k < kReductionOperands; ++k)
    reduction.data[k] = data[k] != nullptr ? data[k] + planned.offsets[k] : nullptr;
  reduction.end = planned.groups;
  reduction.stage = planned.stage;
  reduction.group_elements = planned.group_elements;
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
  reduction.split = traits.has_lanes && planned.split > 0 && reduction.data[0] != nullptr &&
                    reduction.stage == Reduction::kAllStages;
  const bool packed = reduction.elements.strides[1][reduction.elements.rank - 1] != element_size &&
                      !(side_by_side && traits.has_lanes) && !reduction.split;
  reduction.streaming = reduction.data[0] != nullptr &&
                        streams(count * moved, packed, reduction.data[0] == reduction.data[1]);
  const std::int64_t work = group_work(elements, traits);
  const std::int64_t wanted = shard_count(count * work);
  const std::int64_t unit = groups_in_line(reduction, element_size);
  const bool fills_line = unit == kLineBytes / element_size;
  const std::int64_t units = (count + unit - 1) / unit, busy = std::min(wanted, units);
  const std::int64_t largest = (units + busy - 1) / busy;  // units of a shard
  reduction.by_lanes = traits.has_lanes && side_by_side && fills_line && !reduction.split;
  // Parts of groups would take at most 3/4 of the time of shards of whole units. Each time, the
  // threads wait for each other.
  const std::int64_t at_once = groups_at_once(reduction, traits);
  const std::int64_t times = (count - 1) / at_once + 1;
  const std::int64_t in_parts = count * work / wanted + times * split_threshold();
  if (wanted > 1 && 4 * in_parts <= 3 * largest * unit * work &&
      reduction.stage == Reduction::kAllStages &&
      (traits.has_lanes || are_dense_rows(reduction, element_size)) &&
      run_in_parts(reduction, elements, at_once, wanted, traits, kernel, parameters))
    return;
  // Threads that share lines are faster than idle ones.
  const std::int64_t shard_unit = fills_line || units >= wanted ? unit : 1;
  const std::int64_t shards = std::min(wanted, (count + shard_unit - 1) / shard_unit);
  if (reduction.split) {
    const std::int64_t together =
        split_groups_at_once(reduction, planned.split, shards, element_size, traits);
    if (run_split(reduction, elements, together, shards, shard_unit, traits, kernel, parameters))
      return;
  }
  reduction.split = false;
  if (shards <= 1) return kernel(reduction, parameters);
  parallel_for(static_cast<int>(shards), [&](int i) {
    Reduction shard = reduction;
    shard.first = shard_begin(count, shards, i, shard_unit);
    shard.end = shard_begin(count, shards, i + 1, shard_unit);
    if (shard.first < shard.end) kernel(shard, parameters);
  });
}

}  // namespace dmlops
