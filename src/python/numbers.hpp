// Python's numbers as double, such that a second rounding does not go wrong.
#pragma once

#include <string>

#include <Python.h>

namespace dmlops::python {

// Converts a real number of any type: int, float, Fraction, Decimal, NumPy's scalars. An inexact
// result is rounded to odd, not to nearest: rounding it once more, to float32 or float16, gives the
// value nearest to `number`. Beyond double's range the result is the largest finite double. False
// with a Python error set, a TypeError if `number` is not a real number.
bool to_double(PyObject* number, double& result);

// The number as Python writes it, or "a number" where Python refuses to write its many digits.
std::string text_of(PyObject* number);

}  // namespace dmlops::python
