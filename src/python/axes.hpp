// Reads the axes of a reduction.
#pragma once

#include <Python.h>

#include "dmlops/tensor.hpp"

namespace dmlops::python {

// Reads an int or a sequence of ints; null is the last axis. Returns false with a Python error set.
bool read_axes(const char* function, PyObject* value, const ConstTensorView& input,
               std::int64_t (&axes)[kMaxRank], std::size_t& count);

}  // namespace dmlops::python
