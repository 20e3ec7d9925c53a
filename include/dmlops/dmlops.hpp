// The whole C++ interface except <dmlops/directml.h>, which takes the structs of <DirectML.h>.
#pragma once

#include "dmlops/activations.hpp"
#include "dmlops/device.hpp"
#include "dmlops/operator_descs.hpp"
#include "dmlops/operators.hpp"
#include "dmlops/runtime.hpp"
