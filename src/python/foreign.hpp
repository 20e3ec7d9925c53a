// Arrays of other libraries. dmlops._foreign, in Python, knows the libraries and words the
// refusals; only what is not a plain ndarray gets here.
#pragma once

#include <Python.h>

namespace dmlops::python {

// The result of a function whose arguments were refused with a Python error, which is set, if one
// of them is a dask array or a labelled array. Otherwise null, with the same error set.
PyObject* call_foreign(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                       PyObject* keyword_names);

// Returns `result`, a new ndarray, as an array of the type of `like`; steals the reference.
PyObject* wrap_like(PyObject* result, PyObject* like);

// False with a Python error set for a masked array.
bool require_unmasked(const char* function, const char* argument, PyObject* value);

// Each sets the Python error for a value that cannot be read as an array, or has a dtype that is
// not accepted. `refuse_value` replaces the error that is set, if any; `accepted` is null for a
// dtype that is refused for its byte order alone.
void refuse_value(const char* function, const char* argument, PyObject* value,
                  const char* accepted);
void refuse_dtype(const char* function, const char* argument, PyObject* value, PyObject* dtype,
                  const char* accepted);

}  // namespace dmlops::python
