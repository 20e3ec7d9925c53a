// Python's descriptors as C++ ones, by the fields' names.
#pragma once

#include <pybind11/pybind11.h>

#include "descriptors/table.hpp"

namespace dmlops::python {

// Reads an operator's descriptor. Throws Python's TypeError for what is none, ValidationError for
// numbers that DirectML's fields cannot hold.
OperatorDesc read_desc(const pybind11::object& desc);

// The activation of a descriptor without tensors; null and None are no activation. False with a
// Python error set.
bool read_fused_activation(const char* function, PyObject* value,
                           std::optional<FusedActivation>& result);

// Adds validate, required_feature_level, calc_buffer_tensor_size and the two kinds of errors.
void add_descriptors(pybind11::module_& module);

// Sets the Python error for the C++ exception in flight, and returns null.
PyObject* set_descriptor_error();

}  // namespace dmlops::python
