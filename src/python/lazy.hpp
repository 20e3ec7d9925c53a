// Arrays that are computed later, and maybe elsewhere: dask's.
#pragma once

#include <Python.h>

namespace dmlops::python {

// To be asked when the arguments of a function were refused with a Python error, which is set: the
// lazy result, if there is a dask array among them. Otherwise null, and the error is the same.
PyObject* of_lazy_arrays(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                         PyObject* keyword_names);

}  // namespace dmlops::python
