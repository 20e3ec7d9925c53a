// CompiledOperator as a Python type of its own: pybind11's calls would cost more than a small
// dispatch.
#pragma once

#include <pybind11/pybind11.h>

namespace dmlops::python {

// Adds the type CompiledOperator, and compile, which makes its instances.
void add_compiled_operator(pybind11::module_& module);

}  // namespace dmlops::python
