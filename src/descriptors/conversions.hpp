// Parts of the conversions of the operators' own structs to OperatorDesc.
#pragma once

#include "dmlops/operator_descs.hpp"

namespace dmlops {

// Sets the bounds, of the type that `desc` names already.
void set_scalars(OperatorDesc& desc, const Scalar& min, const Scalar& max);

void set_activation(OperatorDesc& desc, const std::optional<OperatorDesc>& activation);

}  // namespace dmlops
