// Classifies and throws Python errors.
#pragma once

#include <pybind11/pybind11.h>

#include "reference.hpp"

namespace dmlops::python {

// True if the pending error concerns a value, unlike MemoryError and KeyboardInterrupt. Only such
// an error may be replaced by a more precise one.
inline bool value_is_at_fault() {
  return PyErr_ExceptionMatches(PyExc_Exception) != 0 &&
         PyErr_ExceptionMatches(PyExc_MemoryError) == 0;
}

// Normalizes and throws the pending Python error. If normalizing fails for lack of memory, throws
// MemoryError, whereas py::error_already_set alone would throw std::runtime_error.
[[noreturn]] inline void throw_python_error() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyErr_Restore(type, value, traceback);
  throw pybind11::error_already_set();
}

// Returns 1 if the attribute exists, 0 if not, -1 with an error set if the lookup failed. (Up to
// version 3.13, Python's own function treats every error as "no attribute".)
inline int has_attribute(PyObject* object, const char* name) {
  if (Reference(PyObject_GetAttrString(object, name))) return 1;
  if (!value_is_at_fault()) return -1;
  PyErr_Clear();
  return 0;
}

}  // namespace dmlops::python
