// Functions for dask arrays: log_softmax in chunks, and checks without data.
#pragma once

#include <pybind11/pybind11.h>

namespace dmlops::python {

void add_dask_functions(pybind11::module_& module);

}  // namespace dmlops::python
