// Arrays of other libraries: calls into dmlops._foreign, which knows the libraries and raises the
// errors. Plain ndarrays do not take this path.
#pragma once

#include <Python.h>

namespace dmlops::python {

// Called with a pending error for a refused argument. Returns the function's result if an argument
// is a dask array or a labeled array, and otherwise null with the same error pending.
PyObject* call_foreign(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                       PyObject* keyword_names);

// Returns `result`, a new ndarray, as an array of the type of `like`; steals the reference.
PyObject* wrap_like(PyObject* result, PyObject* like);

// Returns false with a Python error set for a masked array.
bool require_unmasked(const char* function, const char* argument, PyObject* value);

// Tells the library of `value` that its elements have been written. Returns false with a Python
// error set.
bool count_write(PyObject* value);

// The dtype and the number of dimensions that an argument must match, for advice.
struct Required {
  const char* dtype = nullptr;  // null: any of those accepted
  int rank = -1;                // -1: any
};

// Each sets the Python error for a value that cannot be read as an array, or has a wrong dtype or
// byte order. `refuse_value` replaces a pending error.
void refuse_value(const char* function, const char* argument, PyObject* value, const char* accepted,
                  const Required& required = {});
void refuse_dtype(const char* function, const char* argument, PyObject* value, PyObject* dtype,
                  const char* accepted, const Required& required, bool is_byte_order);

// Sets BindingError for a binding of dtype `given`, to a tensor of dtype `wanted`.
void refuse_binding(const char* op, const char* tensor, PyObject* value, const char* given,
                    const char* wanted);

// Sets the Python error for a PyTorch tensor with the negative bit.
void refuse_negated(const char* function, const char* argument);

}  // namespace dmlops::python
