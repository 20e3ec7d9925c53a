// Plans a reduction and the preparation of its output.
#include <algorithm>
#include <iterator>
#include <utility>

#include "core/isa.hpp"
#include "core/views.hpp"
#include "operators/plan.hpp"

namespace dmlops {

OperatorPlan plan_reduction(const ReductionKernel (&kernels)[kFloatTypes],
                            const ReductionTraits& traits, const ReductionOperands& operands,
                            unsigned int reduced, const ReductionParameters::Own& own,
                            Preparation preparation, std::vector<ResultCopy> copies) {
  const ConstTensorView& input = *operands[1];
  const ConstTensorView* const output = operands[0];
  const auto size = element_size(input.type);
  OperatorPlan plan;
  plan.copies = std::move(copies);
  plan.nest.element_size = static_cast<std::int64_t>(size);
  ReductionOperands read;
  std::copy(std::begin(operands), std::end(operands), read);
  if (preparation != Preparation::none) {
    const bool copies_input = preparation == Preparation::copy;
    static constexpr float kZero = 0;  // also of float16
    const ConstTensorView zero(&kZero, input.type, {});
    plan.nest = make_nest(writable(*output), copies_input ? &input : &zero, 1);
    plan.kernel = copy_kernel(size);
    read[copies_input ? 1 : kZeroedOutput] = output;
  }
  auto& planned = plan.parameters.emplace<ReductionParameters>(
      kernels[float_index(input.type)], traits, preparation, own, read, reduced);
  planned.reduction.data[1] = data_of(input);
  return plan;
}

}  // namespace dmlops
