// The parts of the extension module. Each throws the Python error if it fails.
#pragma once

#include <pybind11/pybind11.h>

namespace dmlops::python {

// Adds the operators as functions.
void add_functions(pybind11::module_& module);

// Adds the type CompiledOperator, and compile(), which creates instances.
void add_compiled_operator(pybind11::module_& module);

// Adds validate, required_feature_level, calc_buffer_tensor_size, directml_names,
// ValidationError and BindingError.
void add_descriptors(pybind11::module_& module);

// Adds functions for dask arrays: reductions of groups in chunks.
void add_dask_functions(pybind11::module_& module);

}  // namespace dmlops::python
