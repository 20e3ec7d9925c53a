// Plans a reduction, after a copy of the input where that is faster.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/isa.hpp"
#include "operators/plan.hpp"

namespace dmlops {

OperatorPlan plan_reduction(const ReductionKernel (&kernels)[kFloatTypes],
                            const ReductionTraits& traits, const ReductionOperands& operands,
                            unsigned int reduced, const ReductionParameters::Own& own,
                            bool copies_first, std::vector<ResultCopy> copies) {
  const ConstTensorView& input = *operands[1];
  const ConstTensorView* const output = operands[0];
  const auto size = element_size(input.type);
  OperatorPlan plan;
  plan.copies = std::move(copies);
  plan.nest.element_size = static_cast<std::int64_t>(size);
  ReductionOperands read;
  std::copy(std::begin(operands), std::end(operands), read);
  if (copies_first) {
    const TensorView target = {const_cast<void*>(output->data), output->type, output->rank,
                               output->sizes, output->strides};
    plan.nest = make_nest(target, &input, 1);
    plan.kernel = copy_kernel(size);
    read[1] = output;
  }
  auto& planned = plan.parameters.emplace<ReductionParameters>(kernels[float_index(input.type)],
                                                               traits, own, read, reduced);
  planned.reduction.data[1] = const_cast<char*>(static_cast<const char*>(input.data));
  return plan;
}

}  // namespace dmlops
