// Python errors that a value has caused, told apart from those that it has not.
#pragma once

#include <pybind11/pybind11.h>

namespace dmlops::python {

// Whether the error that is set says something of a value: neither that memory is short, nor
// KeyboardInterrupt and its like. Only such an error may be replaced by a better one.
inline bool value_is_at_fault() {
  return PyErr_ExceptionMatches(PyExc_Exception) != 0 &&
         PyErr_ExceptionMatches(PyExc_MemoryError) == 0;
}

// Throws the Python error that is set, which it normalizes first. Where memory is too short to
// normalize a TypeError, this gives MemoryError, but py::error_already_set a std::runtime_error.
[[noreturn]] inline void throw_python_error() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyErr_Restore(type, value, traceback);
  throw pybind11::error_already_set();
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
