// Helpers of the generated conversions from the operators' structs to OperatorDesc.
#pragma once

#include "dmlops/operator_descs.hpp"

namespace dmlops {

// Sets the bounds, in the data type that `desc` has.
void set_scalars(OperatorDesc& desc, const Scalar& min, const Scalar& max);

void set_activation(OperatorDesc& desc, const std::optional<OperatorDesc>& activation);

}  // namespace dmlops
