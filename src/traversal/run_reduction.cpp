// Runs the kernels of reductions on the thread pool: on parts of groups, on groups split into
// columns, or on shards of whole groups.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/pool.hpp"
#include "traversal/policy.hpp"
#include "traversal/reduction.hpp"

namespace dmlops {
namespace {

// True if the operand has an element for each element of the input.
bool has_every_element(const Reduction& groups, int operand) {
  const auto moves = [operand](const ReductionNest& nest) {
    const std::int64_t* const strides = nest.strides[operand];
    return std::find(strides, strides + nest.rank, 0) == strides + nest.rank;
  };
  return groups.data[operand] != nullptr && moves(groups.elements) && moves(groups.kept);
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

// The groups of a reduction, and how to divide them among threads.
class ReductionRun {
 public:
  ReductionRun(const PlannedReduction& planned, char* const* data, std::int64_t element_size,
               const ReductionTraits& traits, ReductionKernel kernel, const void* parameters);

  void run();

 private:
  bool are_side_by_side(int operand) const;
  bool are_dense_rows() const;
  std::int64_t groups_in_line() const;
  std::int64_t bytes_moved() const;
  bool pays_off_in_parts(std::int64_t wanted) const;
  std::int64_t groups_at_once() const;
  std::int64_t split_groups_at_once(std::int64_t shards) const;
  bool run_in_parts(std::int64_t wanted) const;
  bool run_split(std::int64_t shards, std::int64_t unit) const;
  void run_shards(std::int64_t shards, std::int64_t unit, std::int64_t at_once,
                  const PartSums* sums) const;
  void run_range(Reduction groups, std::int64_t first, std::int64_t end,
                 std::int64_t at_once) const;

  const std::int64_t element_size_, split_rows_;
  const ReductionTraits& traits_;
  const ReductionKernel kernel_;
  const void* const parameters_;
  Reduction groups_;
  std::int64_t elements_ = 1;  // of a group
  std::int64_t work_, unit_;   // the time of a group; the groups in a cache line
  bool fills_line_;
};

ReductionRun::ReductionRun(const PlannedReduction& planned, char* const* data,
                           std::int64_t element_size, const ReductionTraits& traits,
                           ReductionKernel kernel, const void* parameters)
    : element_size_(element_size),
      split_rows_(planned.split),
      traits_(traits),
      kernel_(kernel),
      parameters_(parameters),
      groups_{planned.elements, planned.kept} {
  for (int k = 0; k < kReductionOperands; ++k)
    groups_.data[k] = data[k] != nullptr ? data[k] + planned.offsets[k] : nullptr;
  groups_.end = planned.groups;
  groups_.stage = planned.stage;
  groups_.group_elements = planned.group_elements;
  const ReductionNest& nest = groups_.elements;
  for (int d = 0; d < nest.rank; ++d) elements_ *= nest.sizes[d];
  work_ = group_work(elements_, traits);
  const bool has_output = groups_.data[0] != nullptr,
             by_columns = traits.has_lanes && are_side_by_side(1);
  groups_.split =
      traits.has_lanes && split_rows_ > 0 && has_output && groups_.stage == Reduction::kAllStages;
  const bool packed =
      nest.strides[1][nest.rank - 1] != element_size && !by_columns && !groups_.split;
  groups_.streaming =
      has_output && streams(bytes_moved(), packed, groups_.data[0] == groups_.data[1]);
  unit_ = groups_in_line();
  fills_line_ = unit_ == kLineBytes / element_size;
  groups_.by_lanes = by_columns && fills_line_ && !groups_.split;
}

void ReductionRun::run() {
  const std::int64_t wanted = shard_count(groups_.end * work_);
  if (pays_off_in_parts(wanted) && run_in_parts(wanted)) return;
  // Threads that share lines are faster than idle ones.
  const std::int64_t unit = fills_line_ || ceil_div(groups_.end, unit_) >= wanted ? unit_ : 1;
  const std::int64_t shards = std::min(wanted, ceil_div(groups_.end, unit));
  if (groups_.split && run_split(shards, unit)) return;
  groups_.split = false;
  run_shards(shards, unit, groups_.end, nullptr);
}

// True if the groups are adjacent in an operand, and the elements of a group are not.
bool ReductionRun::are_side_by_side(int operand) const {
  const ReductionNest &kept = groups_.kept, &elements = groups_.elements;
  return kept.rank > 0 && kept.strides[operand][0] == element_size_ &&
         std::llabs(elements.strides[operand][elements.rank - 1]) > element_size_;
}

// True if each group is a dense row, in the input and in the output.
bool ReductionRun::are_dense_rows() const {
  const ReductionNest& nest = groups_.elements;
  return nest.rank == 1 && nest.strides[0][0] == element_size_ &&
         nest.strides[1][0] == element_size_;
}

// Returns the number of groups in a cache line, at most those of the innermost dimension, where
// groups lie side by side in the input or the output; otherwise 1. Shards of units that fill a line
// are whole vectors, and share no line if rows are aligned.
std::int64_t ReductionRun::groups_in_line() const {
  const ReductionNest& kept = groups_.kept;
  if (groups_.split) {
    const std::int64_t bytes = groups_.elements.sizes[0] * element_size_, power = bytes & -bytes;
    return std::clamp<std::int64_t>(kLineBytes / power, 1, kept.rank > 0 ? kept.sizes[0] : 1);
  }
  const bool shared = are_side_by_side(0) || are_side_by_side(1);
  return shared ? std::min(kLineBytes / element_size_, kept.sizes[0]) : 1;
}

// Returns the bytes of input, output, and further operands with all elements.
std::int64_t ReductionRun::bytes_moved() const {
  std::int64_t operands = 2;
  for (int k = 2; k < kFirstGroupOperand; ++k) operands += has_every_element(groups_, k) ? 1 : 0;
  return groups_.end * elements_ * element_size_ * operands;
}

// True if parts of groups would take at most 3/4 of the time of shards of whole units. Each time,
// the threads wait for each other.
bool ReductionRun::pays_off_in_parts(std::int64_t wanted) const {
  if (wanted <= 1 || groups_.stage != Reduction::kAllStages) return false;
  if (!traits_.has_lanes && !are_dense_rows()) return false;
  // A single cache line of each row takes as long as two, which hardware prefetches together.
  const std::int64_t units = ceil_div(groups_.end, unit_),
                     largest = std::max<std::int64_t>(ceil_div(units, std::min(wanted, units)),
                                                      groups_.by_lanes && units > 1 ? 2 : 1);
  const std::int64_t times = ceil_div(groups_.end, groups_at_once()),
                     in_parts = groups_.end * work_ / wanted + times * split_threshold();
  return 4 * in_parts <= 3 * largest * unit_ * work_;
}

// Returns the number of groups whose parts are computed together.
std::int64_t ReductionRun::groups_at_once() const {
  if (!traits_.has_lanes) return 1;
  return std::min(groups_.by_lanes ? groups_.kept.sizes[0] : groups_.end, kPartGroups);
}

// Returns the number of split groups that one of `shards` threads computes together: 1 MiB, so that
// results find the input in L2, but at least the columns that memory needs to be read efficiently,
// unless their sums would take much memory.
std::int64_t ReductionRun::split_groups_at_once(std::int64_t shards) const {
  constexpr std::int64_t kBytes = 1 << 20, kMinAtOnce = 128, kMaxAtOnce = 512;
  constexpr std::size_t kMaxSumBytes = 32 << 20;
  const std::int64_t width = groups_.elements.sizes[0],
                     columns =
                         std::clamp(kBytes / (split_rows_ * element_size_), kMinAtOnce, kMaxAtOnce),
                     largest = ceil_div(groups_.end, shards) + unit_;  // shard, at most
  const std::size_t bytes = part_sum_bytes(1, elements_, traits_.part_lanes);
  const auto with_sums = static_cast<std::int64_t>(kMaxSumBytes / bytes);
  const std::int64_t at_once = std::min({columns / width, with_sums, largest, kPartGroups});
  return std::max<std::int64_t>(at_once < unit_ ? at_once : at_once / unit_ * unit_, 1);
}

// Computes few groups in up to `wanted` parts. Returns false, and computes nothing, if the groups
// are too short for parts, or if memory is exhausted.
bool ReductionRun::run_in_parts(std::int64_t wanted) const {
  const std::int64_t at_once = groups_at_once();
  std::size_t bytes = kPartSumBytes;
  if (groups_.by_lanes) {
    wanted = std::min<std::int64_t>(wanted, kMomentLanes);
  } else {
    const std::int64_t max_parts = at_once * elements_ / (traits_.shortest_part * kSumBlock);
    wanted = std::min<std::int64_t>({wanted, max_parts, kMaxParts});
    if (elements_ < 2 * kSumBlock || wanted < 2) return false;
    bytes = part_sum_bytes(at_once, elements_, traits_.part_lanes);
  }
  const PartSums sums(bytes, 1);
  if (sums.is_exhausted()) return false;
  Reduction groups = groups_;
  groups.part_sums = sums[0];
  groups.parts = static_cast<int>(wanted);
  run_range(groups, 0, groups.end, at_once);
  return true;
}

// Computes groups that are split in shards. Returns false, and computes nothing, if memory is
// exhausted.
bool ReductionRun::run_split(std::int64_t shards, std::int64_t unit) const {
  const std::int64_t at_once = split_groups_at_once(shards);
  const PartSums sums(part_sum_bytes(at_once, elements_, traits_.part_lanes), shards);
  if (sums.is_exhausted()) return false;
  run_shards(shards, unit, at_once, &sums);
  return true;
}

// Computes the groups in shards, up to `at_once` groups of a shard at a time, with the shard's
// `sums` unless null.
void ReductionRun::run_shards(std::int64_t shards, std::int64_t unit, std::int64_t at_once,
                              const PartSums* sums) const {
  if (shards <= 1 && sums == nullptr) return kernel_(groups_, parameters_);
  parallel_for(static_cast<int>(shards), [&](int i) {
    Reduction shard = groups_;
    if (sums != nullptr) shard.part_sums = (*sums)[i];
    run_range(shard, shard_begin(groups_.end, shards, i, unit),
              shard_begin(groups_.end, shards, i + 1, unit), at_once);
  });
}

// Calls the kernel for the groups [first, end), up to `at_once` at a time.
void ReductionRun::run_range(Reduction groups, std::int64_t first, std::int64_t end,
                             std::int64_t at_once) const {
  // A call has groups of one run of the innermost dimension if parts are by lanes, or if a single
  // thread computes split groups.
  const bool of_run = (groups.parts > 1 ? groups.by_lanes : groups.split) && groups.kept.rank > 0;
  const std::int64_t size = of_run ? groups.kept.sizes[0] : groups.end;
  groups.parallel_for = parallel_for;
  for (groups.first = first; groups.first < end; groups.first = groups.end) {
    groups.end = std::min(end, groups.first + std::min(at_once, size - groups.first % size));
    kernel_(groups, parameters_);
  }
}

}  // namespace

std::int64_t group_work(std::int64_t elements, const ReductionTraits& traits) {
  constexpr std::int64_t kGroupOverhead = 8;  // in elements
  return (elements + kGroupOverhead) * traits.weight * kReducedBytes;
}

void run(const PlannedReduction& planned, char* const* data, std::int64_t element_size,
         const ReductionTraits& traits, ReductionKernel kernel, const void* parameters) {
  ReductionRun(planned, data, element_size, traits, kernel, parameters).run();
}

}  // namespace dmlops
