// Arguments of the functions that are called in loops: matched by position and name with no
// dictionary and no tuple.
#pragma once

#include <optional>
#include <vector>

#include <Python.h>

#include "dmlops/operators.hpp"

namespace dmlops::python {

// The parameters of a function, as in `def f(input, alpha, /, *, out)`: the first `positional` may
// come by position, the first `required` must come.
struct Signature {
  static constexpr int kMaxParameters = 8;
  Signature() = default;  // none yet
  Signature(const char* function, int positional, int required,
            const std::vector<const char*>& names);

  const char* function = nullptr;
  int positional = 0;
  int required = 0;
  int count = 0;
  const char* names[kMaxParameters] = {};
  PyObject* interned[kMaxParameters] = {};  // the names as Python has them
};

// Puts the arguments into values[signature.count], null where none was given. False with a Python
// error set.
bool match(const Signature& signature, PyObject* const* arguments, Py_ssize_t positional,
           PyObject* keyword_names, PyObject** values);

// Each reads an argument that may be null (not given); false with a Python error set.
bool read_float(const char* function, const char* argument, PyObject* value, float& result);
bool read_any_bound(const char* function, const char* argument, PyObject* value, Scalar& result);
inline bool read_bound(const char* function, const char* argument, PyObject* value,
                       Scalar& result) {
  if (value == nullptr || value == Py_None) return true;  // no bound
  if (!PyFloat_CheckExact(value)) return read_any_bound(function, argument, value, result);
  result = Scalar(PyFloat_AS_DOUBLE(value));
  return true;
}
bool read_scale_bias(const char* function, PyObject* value, std::optional<ScaleBias>& result);

// Sets the Python error for the C++ exception in flight, and returns null.
PyObject* set_error();

}  // namespace dmlops::python
