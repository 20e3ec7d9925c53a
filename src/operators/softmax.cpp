// softmax, log_softmax and hardmax: the rules, then the plan of the reduction.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/insertion_sort.hpp"
#include "core/isa.hpp"
#include "core/text.hpp"
#include "core/views.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/distances.hpp"
#include "operators/overlap.hpp"
#include "operators/plan.hpp"
#include "traversal/plain.hpp"

namespace dmlops {
namespace {

constexpr std::int64_t kBlock = 64;  // groups, and elements

// The order of the input's memory, compared with the output's.
enum class Order : std::uint8_t {
  similar,
  short_runs,  // groups that are contiguous in the output are short runs in the input
  other,
};

// A dimension that counts groups, and their distances in bytes.
struct Extent {
  std::int64_t size, in, out;
};

// Lists the dimensions that count groups in the order of the output's memory, and returns their
// number.
int list_extents(const ConstTensorView& input, const TensorView& output, unsigned int reduced,
                 Extent* extents) {
  int count = 0;
  for (std::size_t d = rank_of(input); d-- > 0;) {
    if (input.sizes[d] == 1 || has_bit(reduced, d)) continue;
    extents[count++] = {input.sizes[d], std::llabs(input.strides[d]),
                        std::llabs(output.strides[d])};
  }
  insertion_sort(extents, count, [](const Extent& a, const Extent& b) { return a.out < b.out; });
  return count;
}

// Returns the order of groups. `near`: the elements of a group share cache lines of the input.
Order compare_groups(const ConstTensorView& input, const TensorView& output, unsigned int reduced,
                     bool near) {
  constexpr std::int64_t kShortRun = 48;  // bytes
  constexpr std::int64_t kRun = 16;       // groups
  Extent kept[kMaxRank];
  const int count = list_extents(input, output, reduced, kept);
  const std::int64_t size = element_bytes(input.type);
  std::int64_t run = size;  // bytes of groups that are contiguous in the output
  for (int d = 0; d < count && kept[d].out == run; ++d) run *= kept[d].size;
  if (near && run < kRun * size) return Order::similar;
  const auto continues = [&](int d, std::int64_t Extent::*stride) {
    return kept[d + 1].*stride == kept[d].*stride * kept[d].size;
  };
  int last = 0;
  while (last + 1 < count && continues(last, &Extent::in) && continues(last, &Extent::out)) ++last;
  if (last + 1 < count && continues(last, &Extent::out) &&
      kept[last].out * kept[last].size < kShortRun)
    return Order::short_runs;
  // Groups have another order, and blocks of them are not contiguous in both.
  const auto inner = [](const Extent& a, const Extent& b) { return a.in < b.in; };
  if (std::is_sorted(kept, kept + count, inner)) return Order::similar;
  const bool are_blocks =
      kept[0].size >= kBlock && std::min_element(kept, kept + count, inner) == kept;
  return are_blocks ? Order::similar : Order::other;
}

// Returns `similar` unless the input or the output would be accessed element by element, or packed
// anew in each pass over the groups.
Order compare_order(const ConstTensorView& input, const TensorView& output, unsigned int reduced,
                    const Distances& in, const Distances& out) {
  const std::int64_t size = element_bytes(input.type);
  // Groups longer than a tile are contiguous in the output alone.
  if (in.count > kTileElements && out.elements == size && in.elements > size &&
      in.elements != Distances::kBroadcast)
    return Order::other;
  // The groups are adjacent in the input, but the elements of a group in the output: worth a copy
  // from several blocks on.
  if (out.elements <= kNearBytes && in.elements > kNearBytes) {
    const bool side_by_side = in.are_side_by_side() && in.elements != Distances::kBroadcast;
    return in.count > kBlock && side_by_side ? Order::other : Order::similar;
  }
  // The elements of a group have another order.
  if (in.count > kBlock && in.has_shorter_runs_than(out)) return Order::other;
  const bool near = in.elements <= kNearBytes;
  if (in.elements <= size || (near && out.elements <= kNearBytes)) return Order::similar;
  // The groups are contiguous in the output alone.
  if (in.count > kBlock && in.groups > size && out.groups == size) return Order::other;
  return compare_groups(input, output, reduced, near);
}

// An operator of the family.
struct Operator {
  const char* name;
  ReductionKernel (KernelTable::*kernels)[kFloatTypes];
  ReductionTraits traits;
  bool zeros;  // most results are 0
  OperatorPlan (*plan)(const ConstTensorView& input, unsigned int reduced,
                       const TensorView& output);
};

constexpr ReductionTraits kExponentials = {4, kSumLanes, 4}, kComparisons = {1, kSumLanes, 4};
constexpr Operator kSoftmax = {"softmax", &KernelTable::softmax, kExponentials, false,
                               plan_softmax};
constexpr Operator kLogSoftmax = {"log_softmax", &KernelTable::log_softmax, kExponentials, false,
                                  plan_log_softmax};
constexpr Operator kHardmax = {"hardmax", &KernelTable::hardmax, kComparisons, true, plan_hardmax};

// An input of another order is copied, by the traversal of elementwise operators. If most results
// are 0, zeros are written in the order of the output's memory instead, and the input is read in
// its own; groups that are short are copied, since each writes a result by itself.
Preparation prepare(const Operator& op, const ConstTensorView& input, const TensorView& output,
                    unsigned int reduced) {
  constexpr std::int64_t kShortest = 24;  // elements
  const Distances in(input, reduced), out(output, reduced);
  const bool alternates = out.elements > kNearBytes || out.are_side_by_side();
  if (op.zeros && in.run > kBlock && alternates) return Preparation::zeros;
  const Order order = compare_order(input, output, reduced, in, out);
  if (order == Order::similar) return Preparation::none;
  return op.zeros && order == Order::other && in.count > kShortest ? Preparation::zeros
                                                                   : Preparation::copy;
}

OperatorPlan plan(const Operator& op, ConstTensorView input, unsigned int reduced,
                  TensorView output) {
  std::vector<ResultCopy> copies = remove_repetition(output, &input, 1, reduced);
  const ConstTensorView target = output;
  return plan_reduction(kernels().*op.kernels, op.traits, {&target, &input}, reduced, {},
                        prepare(op, input, output, reduced), std::move(copies));
}

// Checks the arguments, plans unless the call is a plain one, and runs.
void reduce(const Operator& op, const ConstTensorView& input, const std::int64_t* axes,
            std::size_t axis_count, const TensorView& output) {
  require_type(op.name, input.type, kFloats);
  // reduce_if_rows() applies the exact threshold.
  const std::int64_t elements = plain_elements(input, output, kReducedBytes);
  if (elements == 0) require_input(op.name, input);
  const unsigned int reduced = reduced_axes(op.name, input, axes, axis_count);
  if (reduced == 0) throw Error(concat(op.name, ": axes is empty; it needs at least one axis"));
  if (elements > 0 && reduce_if_rows(input, reduced, output, elements, op.traits,
                                     (kernels().*op.kernels)[float_index(input.type)]))
    return;
  require_output(op.name, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  op.plan(readable.view(), reduced, output).run();
}

}  // namespace

OperatorPlan plan_softmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output) {
  return plan(kSoftmax, input, reduced, output);
}

OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output) {
  // A single element gives 0, or NaN if it is not finite, as 0 x + 0 does.
  if (Distances(input, reduced).count == 1)
    return plan_activation(Activation::linear, input, {0, 0}, output);
  return plan(kLogSoftmax, input, reduced, output);
}

OperatorPlan plan_hardmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output) {
  return plan(kHardmax, input, reduced, output);
}

void softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  reduce(kSoftmax, input, axes, axis_count, output);
}

void log_softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                 const TensorView& output) {
  reduce(kLogSoftmax, input, axes, axis_count, output);
}

void hardmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  reduce(kHardmax, input, axes, axis_count, output);
}

}  // namespace dmlops
