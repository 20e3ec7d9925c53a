// softmax, log_softmax and hardmax: the rules, then the plan of the reduction.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/insertion_sort.hpp"
#include "core/isa.hpp"
#include "dmlops/operators.hpp"
#include "operators/check.hpp"
#include "operators/distances.hpp"
#include "operators/plan.hpp"
#include "traversal/plain.hpp"

namespace dmlops {
namespace {

// True if it is faster to copy the input to the output, by the traversal of elementwise operators,
// and to reduce the output in place: in the cases below, the input or the output would be accessed
// element by element, or packed anew in each pass over the groups.
bool copies_first(const ConstTensorView& input, const TensorView& output, unsigned int reduced) {
  constexpr std::int64_t kAdjacent = 16;  // bytes
  constexpr std::int64_t kShortRun = 48;  // bytes
  constexpr std::int64_t kRun = 16;       // groups
  constexpr std::int64_t kBlock = 64;     // groups, and elements
  constexpr std::int64_t kTile = 4096;    // elements
  const auto size = static_cast<std::int64_t>(element_size(input.type));
  const Distances in(input, reduced), out(output, reduced);
  struct Extent {
    std::int64_t size, in, out;
  } kept[kMaxRank];
  int count = 0;
  std::int64_t elements = 1;
  for (int d = input.rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    if (input.sizes[axis] == 1) continue;
    if ((reduced >> d & 1u) == 0) {
      kept[count++] = {input.sizes[axis], std::llabs(input.strides[axis]),
                       std::llabs(output.strides[axis])};
    } else {
      elements *= input.sizes[axis];
    }
  }
  // Groups longer than a tile are contiguous in the output alone.
  if (elements > kTile && out.elements == size && in.elements > size &&
      in.elements != Distances::kBroadcast)
    return true;
  // The groups are adjacent in the input, but the elements of a group in the output: worth a copy
  // from several blocks on.
  if (out.elements <= kAdjacent && in.elements > kAdjacent)
    return elements > kBlock && in.are_side_by_side() && in.elements != Distances::kBroadcast;
  // The elements of a group have another order.
  if (elements > kBlock && in.has_shorter_runs_than(out, elements)) return true;
  const bool near = in.elements <= kAdjacent;
  if (in.elements <= size || (near && out.elements <= kAdjacent)) return false;
  // The groups are contiguous in the output alone.
  if (elements > kBlock && in.groups > size && out.groups == size) return true;

  insertion_sort(kept, count, [](const Extent& a, const Extent& b) { return a.out < b.out; });
  std::int64_t run = size;  // bytes of groups that are contiguous in the output
  for (int d = 0; d < count && kept[d].out == run; ++d) run *= kept[d].size;
  if (near && run < kRun * size) return false;
  // Groups that are contiguous in the output are short runs in the input.
  const auto continues = [&](int d, std::int64_t Extent::*stride) {
    return kept[d + 1].*stride == kept[d].*stride * kept[d].size;
  };
  int last = 0;
  while (last + 1 < count && continues(last, &Extent::in) && continues(last, &Extent::out)) ++last;
  if (last + 1 < count && continues(last, &Extent::out) &&
      kept[last].out * kept[last].size < kShortRun)
    return true;
  // Groups have another order, and blocks of them are not contiguous in both.
  const auto inner = [](const Extent& a, const Extent& b) { return a.in < b.in; };
  if (std::is_sorted(kept, kept + count, inner)) return false;
  return kept[0].size < kBlock || std::min_element(kept, kept + count, inner) != kept;
}

constexpr int kExponentials = 4;  // the weight of formulas with an exponential per element
constexpr ReductionTraits kSoftmax = {kExponentials, kSumLanes, 4}, kHardmax = {1, kSumLanes, 4};

using Kernels = ReductionKernel[kFloatTypes];

OperatorPlan plan(const Kernels& kernels, const ReductionTraits& traits, ConstTensorView input,
                  unsigned int reduced, TensorView output) {
  std::vector<ResultCopy> copies = remove_repetition(output, &input, 1, reduced);
  const ConstTensorView target = output;
  return plan_reduction(kernels, traits, {&target, &input}, reduced, {},
                        copies_first(input, output, reduced), std::move(copies));
}

// Checks the arguments, plans unless the call is a plain one, and runs.
template <class Plan>
void reduce(const char* op, const ConstTensorView& input, const std::int64_t* axes,
            std::size_t axis_count, const TensorView& output, const Kernels& kernels,
            const ReductionTraits& traits, const Plan& plan) {
  require_type(op, input, kFloats);
  // reduce_if_rows() applies the exact threshold.
  const std::int64_t elements = plain_elements(input, output, kReducedBytes);
  if (elements == 0) require_input(op, input);
  const unsigned int reduced = reduced_axes(op, input, axes, axis_count);
  require_axes(op, reduced);
  if (elements > 0 &&
      reduce_if_rows(input, reduced, output, elements, traits, kernels[float_index(input.type)]))
    return;
  require_output(op, output, input);
  if (is_empty(input)) return;
  const ReadableInput readable(input, output);
  plan(readable.view(), reduced, output).run();
}

}  // namespace

OperatorPlan plan_softmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output) {
  return plan(kernels().softmax, kSoftmax, input, reduced, output);
}

OperatorPlan plan_log_softmax(const ConstTensorView& input, unsigned int reduced,
                              const TensorView& output) {
  bool single = true;
  for (int d = 0; d < input.rank; ++d)
    single = single && ((reduced >> d & 1u) == 0 || input.sizes[static_cast<std::size_t>(d)] == 1);
  // A single element gives 0, or NaN if it is not finite, as 0 x + 0 does.
  if (single) return plan_activation(Activation::linear, input, {0, 0}, output);
  return plan(kernels().log_softmax, kSoftmax, input, reduced, output);
}

OperatorPlan plan_hardmax(const ConstTensorView& input, unsigned int reduced,
                          const TensorView& output) {
  return plan(kernels().hardmax, kHardmax, input, reduced, output);
}

void softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  reduce("softmax", input, axes, axis_count, output, kernels().softmax, kSoftmax, plan_softmax);
}

void log_softmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                 const TensorView& output) {
  reduce("log_softmax", input, axes, axis_count, output, kernels().log_softmax, kSoftmax,
         plan_log_softmax);
}

void hardmax(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
             const TensorView& output) {
  reduce("hardmax", input, axes, axis_count, output, kernels().hardmax, kHardmax, plan_hardmax);
}

}  // namespace dmlops
