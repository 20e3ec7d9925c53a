// Arrays that are computed later, and maybe elsewhere: dask's.
#include "lazy.hpp"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace dmlops::python {
namespace {

// A dask array implies that dask.array is imported, so the lookup must not import it. An entry of
// sys.modules can be None, or another module of that name.
bool has_dask_array(PyObject* const* arguments, Py_ssize_t count) {
  const auto modules = py::reinterpret_borrow<py::dict>(PyImport_GetModuleDict());
  const py::object type = py::getattr(modules.attr("get")("dask.array"), "Array", py::none());
  if (!PyType_Check(type.ptr())) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const int found = PyObject_IsInstance(arguments[i], type.ptr());
    if (found < 0) throw py::error_already_set();
    if (found != 0) return true;
  }
  return false;
}

// The error that is set, set aside as it is: py::error_already_set would normalize it, which needs
// memory.
class Refusal {
 public:
  Refusal() {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    type_ = py::reinterpret_steal<py::object>(type);
    value_ = py::reinterpret_steal<py::object>(value);
    traceback_ = py::reinterpret_steal<py::object>(traceback);
  }
  void restore() {
    PyErr_Restore(type_.release().ptr(), value_.release().ptr(), traceback_.release().ptr());
  }

 private:
  py::object type_, value_, traceback_;
};

}  // namespace

PyObject* of_lazy_arrays(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                         PyObject* keyword_names) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
  Refusal refusal;
  try {
    const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
    if (!has_dask_array(arguments, positional + keywords)) {
      refusal.restore();
      return nullptr;
    }
    py::tuple given(static_cast<std::size_t>(positional));
    for (Py_ssize_t i = 0; i < positional; ++i)
      given[static_cast<std::size_t>(i)] = py::reinterpret_borrow<py::object>(arguments[i]);
    py::dict named;
    for (Py_ssize_t k = 0; k < keywords; ++k) {
      named[PyTuple_GET_ITEM(keyword_names, k)] =
          py::reinterpret_borrow<py::object>(arguments[positional + k]);
    }
    const py::object result =
        py::module_::import("dmlops._dask").attr("call")(function, given, named);
    if (!result.is(py::reinterpret_borrow<py::object>(Py_NotImplemented)))
      return py::object(result).release().ptr();
    refusal.restore();
  } catch (py::error_already_set& error) {
    error.restore();
  }
  return nullptr;
}

}  // namespace dmlops::python
