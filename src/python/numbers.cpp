// Converts Python's numbers to double, rounded to odd against double rounding.
#include "numbers.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/attributes.hpp"
#include "core/float_environment.hpp"
#include "errors.hpp"
#include "reference.hpp"

namespace dmlops::python {
namespace {

// Compares two objects. Returns 1 or 0, 0 also for incomparable objects, and -1 with an error set
// that must be kept.
int compare(PyObject* number, PyObject* other, int operation) {
  const int result = PyObject_RichCompareBool(number, other, operation);
  if (result >= 0) return result;
  if (!value_is_at_fault()) return -1;
  PyErr_Clear();
  return 0;
}

// Python compares numbers of different types by their exact values.
DMLOPS_COLD bool round_to_odd(PyObject* number, double& nearest) {
  const Reference same(PyFloat_FromDouble(nearest));
  if (!same) return false;
  const int equal = compare(number, same.get(), Py_EQ);
  const int above = equal != 0 ? 0 : compare(number, same.get(), Py_GT);
  const int below = equal != 0 || above != 0 ? 0 : compare(number, same.get(), Py_LT);
  if (equal < 0 || above < 0 || below < 0) return false;
  if (above == 0 && below == 0) return true;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &nearest, sizeof bits);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (bits % 2 == 0) nearest = std::nextafter(nearest, above != 0 ? infinity : -infinity);
  return true;
}

DMLOPS_COLD bool largest_of_sign(PyObject* number, double& result) {
  const Reference zero(PyLong_FromLong(0));
  if (!zero) return false;
  const int negative = compare(number, zero.get(), Py_LT);
  constexpr double largest = std::numeric_limits<double>::max();
  result = negative != 0 ? -largest : largest;
  return negative >= 0;
}

}  // namespace

bool to_double(PyObject* number, double& result) {
  if (PyFloat_Check(number)) {
    result = PyFloat_AS_DOUBLE(number);
    return true;
  }
  const FloatEnvironment environment;
  result = PyFloat_AsDouble(number);
  if (result == -1.0 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) return false;
    PyErr_Clear();
    return largest_of_sign(number, result);
  }
  const bool is_exact_int = PyLong_CheckExact(number) && std::fabs(result) < 0x1p53;
  return is_exact_int || std::isnan(result) || round_to_odd(number, result);
}

std::string text_of(PyObject* number) {
  const Reference text(PyObject_Str(number));
  const char* const letters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (letters != nullptr) return letters;
  PyErr_Clear();
  return "a number";
}

}  // namespace dmlops::python
