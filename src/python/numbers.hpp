// Converts Python's numbers to double, rounded to odd against double rounding.
#pragma once

#include <string>

#include <Python.h>

namespace dmlops::python {

// Converts a real number of any type: int, float, Fraction, Decimal, NumPy's scalars. An inexact
// result is rounded to odd, so that a second rounding to float32 or float16 gives the value nearest
// to `number`. Numbers beyond double's range become the largest finite double. Returns false with a
// Python error set, a TypeError if `number` is not a real number.
bool to_double(PyObject* number, double& result);

// Returns the number's str(), or "a number" if Python refuses to print its many digits.
std::string text_of(PyObject* number);

}  // namespace dmlops::python
