// Arrays of other libraries: calls into dmlops._foreign.
#include "foreign.hpp"

namespace dmlops::python {
namespace {

// Calls a function of dmlops._foreign. Steals the tuple of arguments, which may be null with an
// error set. Returns null with a Python error set.
PyObject* call_module(const char* name, PyObject* arguments) {
  if (arguments == nullptr) return nullptr;
  PyObject* const module = PyImport_ImportModule("dmlops._foreign");
  PyObject* const function = module == nullptr ? nullptr : PyObject_GetAttrString(module, name);
  PyObject* const result = function == nullptr ? nullptr : PyObject_CallObject(function, arguments);
  // Python 3.11 sets no error if the allocation of a function's frame fails.
  if (result == nullptr && PyErr_Occurred() == nullptr) PyErr_NoMemory();
  Py_XDECREF(function);
  Py_XDECREF(module);
  Py_DECREF(arguments);
  return result;
}

// Releases the result, None. Returns false if the call failed.
bool is_done(PyObject* result) {
  Py_XDECREF(result);
  return result != nullptr;
}

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
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const given = positional_tuple(arguments, positional);
  PyObject* const named =
      given == nullptr ? nullptr : keyword_dict(keyword_names, arguments + positional);
  PyObject* result = nullptr;
  if (named != nullptr)
    result = call_module("call", Py_BuildValue("(sOO)", function, given, named));
  Py_XDECREF(named);
  Py_XDECREF(given);
  if (result == Py_NotImplemented) {
    Py_DECREF(result);
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result;
}

PyObject* wrap_like(PyObject* result, PyObject* like) {
  return call_module("wrap_like", Py_BuildValue("(NO)", result, like));
}

bool require_unmasked(const char* function, const char* argument, PyObject* value) {
  return is_done(
      call_module("require_unmasked", Py_BuildValue("(ssO)", function, argument, value)));
}

bool count_write(PyObject* value) {
  if (PyObject_CheckBuffer(value) != 0) return true;  // saves half of a small call
  return is_done(call_module("count_write", Py_BuildValue("(O)", value)));
}

void refuse_value(const char* function, const char* argument, PyObject* value, const char* accepted,
                  const Required& required) {
  PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &error, &traceback);
  if (type != nullptr) PyErr_NormalizeException(&type, &error, &traceback);
  Py_XDECREF(call_module("refuse_value", Py_BuildValue("(ssO(szi)O)", function, argument, value,
                                                       accepted, required.dtype, required.rank,
                                                       error == nullptr ? Py_None : error)));
  Py_XDECREF(type);
  Py_XDECREF(error);
  Py_XDECREF(traceback);
}

void refuse_negated(const char* function, const char* argument) {
  Py_XDECREF(call_module("refuse_negated", Py_BuildValue("(ss)", function, argument)));
}

void refuse_dtype(const char* function, const char* argument, PyObject* value, PyObject* dtype,
                  const char* accepted, const Required& required, bool is_byte_order) {
  Py_XDECREF(call_module(
      "refuse_dtype",
      Py_BuildValue("(ssOO(sziO))", function, argument, value, dtype, accepted, required.dtype,
                    required.rank, is_byte_order ? Py_True : Py_False)));
}

void refuse_binding(const char* op, const char* tensor, PyObject* value, const char* given,
                    const char* wanted) {
  Py_XDECREF(
      call_module("refuse_binding", Py_BuildValue("(ssOss)", op, tensor, value, given, wanted)));
}

}  // namespace dmlops::python
