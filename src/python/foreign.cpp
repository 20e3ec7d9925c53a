// Arrays of other libraries: calls into dmlops._foreign.
#include "foreign.hpp"

#include <utility>

#include "reference.hpp"

namespace dmlops::python {
namespace {

// Calls a function of dmlops._foreign. Steals the tuple of arguments, which may be null with an
// error set. Returns null with a Python error set.
PyObject* call_module(const char* name, PyObject* arguments_tuple) {
  const Reference arguments(arguments_tuple);
  if (!arguments) return nullptr;
  const Reference module(PyImport_ImportModule("dmlops._foreign"));
  const Reference function(module ? PyObject_GetAttrString(module.get(), name) : nullptr);
  PyObject* const result =
      function ? PyObject_CallObject(function.get(), arguments.get()) : nullptr;
  // Python 3.11 sets no error if the allocation of a function's frame fails.
  if (result == nullptr && PyErr_Occurred() == nullptr) PyErr_NoMemory();
  return result;
}

// Likewise, of a function without a result. Returns false if the call failed.
bool run_module(const char* name, PyObject* arguments_tuple) {
  return static_cast<bool>(Reference(call_module(name, arguments_tuple)));
}

// The pending error, which is taken from the interpreter.
class PendingError {
 public:
  PendingError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~PendingError() {
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(traceback_);
  }
  PendingError(const PendingError&) = delete;
  PendingError& operator=(const PendingError&) = delete;

  // Returns the exception, a borrowed reference, or None.
  PyObject* exception() {
    if (type_ != nullptr) PyErr_NormalizeException(&type_, &value_, &traceback_);
    return value_ == nullptr ? Py_None : value_;
  }
  void restore() {
    PyErr_Restore(std::exchange(type_, nullptr), std::exchange(value_, nullptr),
                  std::exchange(traceback_, nullptr));
  }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

PyObject* positional_tuple(PyObject* const* arguments, Py_ssize_t count) {
  PyObject* const result = PyTuple_New(count);
  for (Py_ssize_t i = 0; result != nullptr && i < count; ++i)
    PyTuple_SET_ITEM(result, i, Py_NewRef(arguments[i]));
  return result;
}

PyObject* keyword_dict(PyObject* names, PyObject* const* values) {
  PyObject* const result = PyDict_New();
  const Py_ssize_t count = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t k = 0; result != nullptr && k < count; ++k) {
    if (PyDict_SetItem(result, PyTuple_GET_ITEM(names, k), values[k]) == 0) continue;
    Py_DECREF(result);
    return nullptr;
  }
  return result;
}

}  // namespace

PyObject* call_foreign(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                       PyObject* keyword_names) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
  PendingError error;
  const Reference given(positional_tuple(arguments, positional));
  const Reference named(given ? keyword_dict(keyword_names, arguments + positional) : nullptr);
  if (!named) return nullptr;
  PyObject* const result =
      call_module("call", Py_BuildValue("(sOO)", function, given.get(), named.get()));
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  error.restore();
  return nullptr;
}

PyObject* wrap_like(PyObject* result, PyObject* like) {
  return call_module("wrap_like", Py_BuildValue("(NO)", result, like));
}

bool require_unmasked(const char* function, const char* argument, PyObject* value) {
  return run_module("require_unmasked", Py_BuildValue("(ssO)", function, argument, value));
}

bool count_write(PyObject* value) {
  if (PyObject_CheckBuffer(value) != 0) return true;  // saves half of a small call
  return run_module("count_write", Py_BuildValue("(O)", value));
}

void refuse_value(const char* function, const char* argument, PyObject* value, const char* accepted,
                  const Required& required) {
  PendingError error;
  run_module("refuse_value", Py_BuildValue("(ssO(szi)O)", function, argument, value, accepted,
                                           required.dtype, required.rank, error.exception()));
}

void refuse_negated(const char* function, const char* argument) {
  run_module("refuse_negated", Py_BuildValue("(ss)", function, argument));
}

void refuse_dtype(const char* function, const char* argument, PyObject* value, PyObject* dtype,
                  const char* accepted, const Required& required, bool is_byte_order) {
  run_module("refuse_dtype",
             Py_BuildValue("(ssOO(sziO))", function, argument, value, dtype, accepted,
                           required.dtype, required.rank, is_byte_order ? Py_True : Py_False));
}

void refuse_binding(const char* op, const char* tensor, PyObject* value, const char* given,
                    const char* wanted) {
  run_module("refuse_binding", Py_BuildValue("(ssOss)", op, tensor, value, given, wanted));
}

}  // namespace dmlops::python
