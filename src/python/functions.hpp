// The operators as Python functions.
#pragma once

#include <Python.h>

namespace dmlops::python {

// False with a Python error set.
bool add_functions(PyObject* module);

}  // namespace dmlops::python
