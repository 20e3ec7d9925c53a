// Arrays that are computed later, and maybe elsewhere: dask's.
#include "lazy.hpp"

#include <pybind11/pybind11.h>

#include "errors.hpp"

// The callers are functions that pybind11 does not wrap, so no C++ exception may leave this file:
// it calls the C API, and py::object only counts references.
namespace py = pybind11;

namespace dmlops::python {
namespace {

py::object steal(PyObject* object) { return py::reinterpret_steal<py::object>(object); }

// 1 or 0; -1 with an error set. A dask array implies that dask.array is imported, so the lookup
// must not import it. An entry of sys.modules can be None, or another module of that name.
int has_dask_array(PyObject* const* arguments, Py_ssize_t count) {
  const py::object module =
      steal(PyObject_CallMethod(PyImport_GetModuleDict(), "get", "s", "dask.array"));
  if (!module) return -1;
  const py::object type = steal(PyObject_GetAttrString(module.ptr(), "Array"));
  if (!type) {
    if (!value_is_at_fault()) return -1;
    PyErr_Clear();
    return 0;
  }
  if (!PyType_Check(type.ptr())) return 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int found = PyObject_IsInstance(arguments[i], type.ptr());
    if (found != 0) return found;
  }
  return 0;
}

// The lazy result, or NotImplemented; null with an error set.
py::object call_dask(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                     PyObject* keyword_names, Py_ssize_t keywords) {
  const py::object given = steal(PyTuple_New(positional));
  const py::object named = steal(PyDict_New());
  if (!given || !named) return {};
  for (Py_ssize_t i = 0; i < positional; ++i) {
    Py_INCREF(arguments[i]);
    PyTuple_SET_ITEM(given.ptr(), i, arguments[i]);
  }
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* const name = PyTuple_GET_ITEM(keyword_names, k);
    if (PyDict_SetItem(named.ptr(), name, arguments[positional + k]) < 0) return {};
  }
  const py::object module = steal(PyImport_ImportModule("dmlops._dask"));
  if (!module) return {};
  return steal(
      PyObject_CallMethod(module.ptr(), "call", "sOO", function, given.ptr(), named.ptr()));
}

}  // namespace

PyObject* of_lazy_arrays(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                         PyObject* keyword_names) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  const int found = has_dask_array(arguments, positional + keywords);
  py::object result;
  if (found > 0) result = call_dask(function, arguments, positional, keyword_names, keywords);
  if (found == 0 || result.ptr() == Py_NotImplemented) {
    PyErr_Restore(type, value, traceback);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result.release().ptr();
}

}  // namespace dmlops::python
