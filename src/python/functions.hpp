// The operators as Python functions.
#pragma once

#include <Python.h>

namespace dmlops::python {

// Adds the functions. Returns false with a Python error set.
bool add_functions(PyObject* module);

}  // namespace dmlops::python
