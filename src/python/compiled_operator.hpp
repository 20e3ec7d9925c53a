// The Python type CompiledOperator.
#pragma once

#include <pybind11/pybind11.h>

namespace dmlops::python {

// Adds the type CompiledOperator, and compile(), which creates instances.
void add_compiled_operator(pybind11::module_& module);

}  // namespace dmlops::python
