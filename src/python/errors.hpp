// Python errors that a value has caused, told apart from those that it has not.
#pragma once

#include <Python.h>

namespace dmlops::python {

// Whether the error that is set says something of a value: neither that memory is short, nor
// KeyboardInterrupt and its like. Only such an error may be replaced by a better one.
inline bool value_is_at_fault() {
  return PyErr_ExceptionMatches(PyExc_Exception) != 0 &&
         PyErr_ExceptionMatches(PyExc_MemoryError) == 0;
}

// 1 if there is the attribute, 0 if there is none, -1 with an error set if it could not be asked
// for. (Python's own function takes every error for "none" up to version 3.13.)
inline int has_attribute(PyObject* object, const char* name) {
  PyObject* const value = PyObject_GetAttrString(object, name);
  Py_XDECREF(value);
  if (value != nullptr) return 1;
  if (!value_is_at_fault()) return -1;
  PyErr_Clear();
  return 0;
}

}  // namespace dmlops::python
