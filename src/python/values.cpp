// Converts Python's numbers to the types of DirectML's fields.
#include "values.hpp"

#include <limits>

#include "core/float16.hpp"
#include "core/text.hpp"
#include "descriptors/table.hpp"
#include "errors.hpp"
#include "numbers.hpp"
#include "operators/scalars.hpp"
#include "operators/type_sets.hpp"

namespace py = pybind11;

namespace dmlops::python {
namespace {

[[noreturn]] void throw_range_error(const std::string& where, py::handle value,
                                    const std::string& type) {
  throw ValidationError(concat(where, " is ", text_of(value.ptr()), ", which does not fit ", type));
}

// Reads an integer that fits T, DirectML's type `type`.
template <class T>
T read_whole(const std::string& where, py::handle value, const std::string& type) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) {
    if (!value_is_at_fault()) throw_python_error();
    PyErr_Clear();
    throw_type_error(where, "an integer", value);
  }
  const auto refuse = [&] {
    using Limits = std::numeric_limits<T>;
    throw_range_error(where, value, concat(type, " (", Limits::min(), " to ", Limits::max(), ")"));
  };
  T result = 0;
  if constexpr (std::is_signed_v<T>) {
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    result = static_cast<T>(wide);
    if (overflow != 0 || result != wide) refuse();
  } else {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(index.ptr());
    const bool failed = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    result = static_cast<T>(wide);
    if (failed || result != wide) refuse();
  }
  return result;
}

double double_from(const std::string& where, py::handle value) {
  double result = 0;
  if (to_double(value.ptr(), result)) return result;
  if (!value_is_at_fault()) throw_python_error();
  PyErr_Clear();
  throw_type_error(where, "a number", value);
}

// Reads a number that must not become infinite when it is rounded to T.
template <class T>
T read_rounded(const std::string& where, py::handle value, T (*round)(double), const char* type) {
  const double wide = double_from(where, value);
  const T result = round(wide);
  if (is_overflow(static_cast<float>(result), wide)) throw_range_error(where, value, type);
  return result;
}

}  // namespace

void throw_type_error(const std::string& where, const char* expected, py::handle value) {
  throw py::type_error(
      concat(where, " must be ", expected, ", not ", Py_TYPE(value.ptr())->tp_name));
}

std::uint64_t uint64_from(const std::string& where, py::handle value) {
  return read_whole<std::uint64_t>(where, value, "UINT64");
}

std::uint32_t uint_from(const std::string& where, py::handle value) {
  return read_whole<std::uint32_t>(where, value, "UINT");
}

float float_from(const std::string& where, py::handle value) {
  return read_rounded<float>(
      where, value, [](double wide) { return static_cast<float>(wide); }, "FLOAT");
}

// Reads a value of the data type in min_max_data_type; integers are exact.
ScalarUnion scalar_from(const std::string& where, py::handle value, DataType type) {
  if (type == DataType::float32) return {to_bits(float_from(where, value))};
  if (type == DataType::float16)
    return {to_bits(read_rounded(where, value, to_float16, "FLOAT16"))};
  if (!kNumbers64.has(type)) return {to_bits(double_from(where, value))};
  return visit_integer(type, [&](auto integer) {
    return ScalarUnion{to_bits(read_whole<decltype(integer)>(where, value, upper_name(type)))};
  });
}

}  // namespace dmlops::python
