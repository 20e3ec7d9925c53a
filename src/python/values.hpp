// Converts Python's numbers to the types of DirectML's fields.
//
// Each throws Python's TypeError for an object that is not a number, and ValidationError for a
// number that does not fit the field. `where` names the field: "ElementWiseClipOperatorDesc: min".
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "dmlops/descriptors.hpp"

namespace dmlops::python {

[[noreturn]] void throw_type_error(const std::string& where, const char* expected,
                                   pybind11::handle value);

std::uint32_t uint_from(const std::string& where, pybind11::handle value);
std::uint64_t uint64_from(const std::string& where, pybind11::handle value);

// Rounds once.
float float_from(const std::string& where, pybind11::handle value);

// Converts to the given data type; integers are exact.
ScalarUnion scalar_from(const std::string& where, pybind11::handle value, DataType type);

}  // namespace dmlops::python
