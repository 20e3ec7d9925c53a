// Python's numbers as the values that DirectML's fields can hold.
//
// Each throws Python's TypeError for what is no number, and ValidationError for one that the field
// cannot hold; `where` names the field: "ElementWiseClipOperatorDesc: min".
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "dmlops/descriptors.hpp"

namespace dmlops::python {

[[noreturn]] void refuse_type(const std::string& where, const char* expected,
                              pybind11::handle value);

std::uint32_t read_uint(const std::string& where, pybind11::handle value);
std::uint64_t read_uint64(const std::string& where, pybind11::handle value);

// Rounded once.
float read_float(const std::string& where, pybind11::handle value);

// In the data type given; integers exactly.
ScalarUnion read_scalar(const std::string& where, pybind11::handle value, DataType type);

}  // namespace dmlops::python
