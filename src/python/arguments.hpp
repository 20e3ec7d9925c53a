// Parses vectorcall arguments by position and name, without allocating a dictionary or a tuple.
#pragma once

#include <optional>
#include <vector>

#include <Python.h>

#include "core/attributes.hpp"
#include "core/float16.hpp"
#include "core/float_environment.hpp"
#include "dmlops/operators.hpp"

namespace dmlops::python {

// The parameters of a function: the first `positional` may be given by position, the first
// `required` must be given.
struct Signature {
  static constexpr int kMaxParameters = 9;
  Signature() = default;  // null until interned
  Signature(const char* function, int positional, int required,
            const std::vector<const char*>& names);

  const char* function = nullptr;
  int positional = 0;
  int required = 0;
  int count = 0;
  const char* names[kMaxParameters] = {};
  PyObject* interned[kMaxParameters] = {};  // the interned names
};

// True for an argument other than None.
inline bool is_given(PyObject* value) { return value != nullptr && value != Py_None; }

// Stores the arguments in values[signature.count], null for those not given. Returns false with a
// Python error set.
bool match(const Signature& signature, PyObject* const* arguments, Py_ssize_t positional,
           PyObject* keyword_names, PyObject** values);

// Reads a real number through __float__: strings have none, and complex numbers are refused.
// Returns false with a Python error set.
bool read_double(const char* function, const char* argument, PyObject* value, double& result);
// Sets the error for a number beyond float32, and returns false.
DMLOPS_COLD bool refuse_overflow(const char* function, const char* argument, PyObject* value);

// Each reads an argument, null if not given, and returns false with a Python error set.
inline bool read_float(const char* function, const char* argument, PyObject* value, float& result) {
  if (value == nullptr) return true;
  const FloatEnvironment environment;
  double wide = 0;
  if (PyFloat_CheckExact(value)) {
    wide = PyFloat_AS_DOUBLE(value);
  } else if (!read_double(function, argument, value, wide)) {
    return false;
  }
  result = static_cast<float>(wide);
  return !is_overflow(result, wide) || refuse_overflow(function, argument, value);
}
bool read_bool(const char* function, const char* argument, PyObject* value, bool& result);
bool read_any_bound(const char* function, const char* argument, PyObject* value, Scalar& result);
inline bool read_bound(const char* function, const char* argument, PyObject* value,
                       Scalar& result) {
  if (!is_given(value)) return true;
  if (!PyFloat_CheckExact(value)) return read_any_bound(function, argument, value, result);
  result = Scalar(PyFloat_AS_DOUBLE(value));
  return true;
}
bool read_scale_bias(const char* function, PyObject* value, std::optional<ScaleBias>& result);

// Sets the Python error for the C++ exception in flight, and returns null.
PyObject* set_error();

}  // namespace dmlops::python
