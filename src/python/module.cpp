// The extension module dmlops._core: the operators, and run-time settings and facts.
#include "module.hpp"

#include <cstring>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "core/pool.hpp"
#include "dmlops/runtime.hpp"
#include "errors.hpp"
#include "ndarray.hpp"
#include "operators/check.hpp"
#include "traversal/policy.hpp"
#include "traversal/policy_setters.hpp"

namespace py = pybind11;

namespace {

// Sets the docstring of a built-in function, once. Docstrings are written in Python, where tools
// and tests find their examples.
void add_docstring(const py::object& function, const std::string& text) {
  if (!PyCFunction_Check(function.ptr()))
    throw py::type_error("add_docstring takes a built-in function");
  PyMethodDef* const definition = reinterpret_cast<PyCFunctionObject*>(function.ptr())->m_ml;
  if (definition->ml_doc != nullptr) return;     // already set on a second import
  char* const kept = new char[text.size() + 1];  // never freed, like the function
  std::memcpy(kept, text.c_str(), text.size() + 1);
  definition->ml_doc = kept;
}

}  // namespace

PYBIND11_MODULE(_core_module, module, py::mod_gil_not_used()) {
  if (!dmlops::python::import_numpy()) dmlops::python::throw_python_error();
  dmlops::python::add_functions(module);
  dmlops::use_python_names();
  dmlops::python::add_descriptors(module);
  dmlops::python::add_compiled_operator(module);
  dmlops::python::add_dask_functions(module);
  module.def("add_docstring", &add_docstring);
  module.def("version", &dmlops::version);
  module.def("isa", &dmlops::isa);
  module.def("set_isa", &dmlops::set_isa, py::arg("name"));
  module.def("available_isas", [] { return py::tuple(py::cast(dmlops::available_isas())); });
  module.def("get_num_threads", &dmlops::get_num_threads);
  module.def("set_num_threads", &dmlops::set_num_threads, py::arg("n"));
  module.def("exchange_own_num_threads", &dmlops::exchange_own_num_threads, py::arg("n"));
  module.def("non_temporal_threshold", &dmlops::non_temporal_threshold);
  module.def("split_threshold", &dmlops::split_threshold);
  module.def("set_split_threshold", &dmlops::set_split_threshold, py::arg("bytes"));
  module.def("set_non_temporal_threshold", &dmlops::set_non_temporal_threshold, py::arg("bytes"));
  module.def("compiler", &dmlops::compiler);
  module.def("build_flags", &dmlops::build_flags);
}

// Refuses sub-interpreters before pybind11 is initialized, which would deadlock in those of Python
// 3.11 or older. NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): Python's
// name for it
extern "C" PYBIND11_EXPORT PyObject* PyInit__core();
PyObject* PyInit__core() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__core_module();
  PyErr_SetString(PyExc_ImportError,
                  "dmlops cannot be imported in a sub-interpreter; import it in the main one");
  return nullptr;
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
