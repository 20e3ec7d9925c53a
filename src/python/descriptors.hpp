// Converts Python's descriptors to C++, by the names of fields.
#pragma once

#include <pybind11/pybind11.h>

#include "descriptors/table.hpp"

namespace dmlops::python {

// Reads an operator's descriptor. Throws Python's TypeError for other objects, and ValidationError
// for numbers that do not fit DirectML's fields.
OperatorDesc read_desc(const std::string& where, const pybind11::object& desc);

// Reads the activation of a descriptor without tensors; null and None are no activation. Returns
// false with a Python error set.
bool read_fused_activation(const char* function, PyObject* value,
                           std::optional<FusedActivation>& result);

// Sets the Python error for the C++ exception in flight, and returns null.
PyObject* set_descriptor_error();

}  // namespace dmlops::python
