// Arrays that are computed later, and maybe elsewhere: dask's.
#include "lazy.hpp"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace dmlops::python {

PyObject* of_lazy_arrays(const char* function, PyObject* const* arguments, Py_ssize_t positional,
                         PyObject* keyword_names) {
  if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) return nullptr;
  // Who has such an array has imported its module. To look must not cost the error.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const bool imported = PyDict_GetItemString(PyImport_GetModuleDict(), "dask.array") != nullptr;
  PyErr_Restore(type, value, traceback);
  if (!imported) return nullptr;
  py::error_already_set refusal;
  try {
    py::tuple given(static_cast<std::size_t>(positional));
    for (Py_ssize_t i = 0; i < positional; ++i)
      given[static_cast<std::size_t>(i)] = py::reinterpret_borrow<py::object>(arguments[i]);
    py::dict named;
    const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
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
