// Reads the axes of a reduction.
#include "axes.hpp"

#include "arguments.hpp"
#include "core/attributes.hpp"
#include "core/text.hpp"
#include "numbers.hpp"
#include "operators/check.hpp"
#include "reference.hpp"

namespace dmlops::python {
namespace {

// Sets the error for an axis beyond 64 bits.
DMLOPS_COLD bool refuse_axis(const char* function, PyObject* axis, const ConstTensorView& input) {
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s: axis %s is out of range for input with %s, shape %s",
               function, text_of(axis).c_str(), counted(input.rank, "dimension").c_str(),
               shape_text(input).c_str());
  return false;
}

}  // namespace

bool read_axes(const char* function, PyObject* value, const ConstTensorView& input,
               std::int64_t (&axes)[kMaxRank], std::size_t& count) {
  const auto wrong_type = [&](PyObject* item) {
    const bool advises = value == Py_None && input.rank > 0;
    PyErr_Format(PyExc_TypeError, "%s: axes must be an int or a sequence of ints, not %s%s",
                 function, Py_TYPE(item)->tp_name,
                 advises ? "; for all axes, use axes=range(input.ndim)" : "");
    return false;
  };
  const auto read_axis = [&](PyObject* item, std::int64_t& axis) {
    const Py_ssize_t read = PyNumber_AsSsize_t(item, PyExc_OverflowError);
    axis = static_cast<std::int64_t>(read);
    if (read != -1 || PyErr_Occurred() == nullptr) return true;
    if (PyErr_ExceptionMatches(PyExc_TypeError) != 0) return wrong_type(item);  // array of several
    return PyErr_ExceptionMatches(PyExc_OverflowError) != 0 && refuse_axis(function, item, input);
  };
  count = 1;
  if (value == nullptr) {
    axes[0] = -1;
    return true;
  }
  if (PyIndex_Check(value) && !PySequence_Check(value)) return read_axis(value, axes[0]);
  // Copies the sequence, since reading an item can run arbitrary code that changes the caller's
  // list.
  const Reference items(PyUnicode_Check(value) ? nullptr : PySequence_Tuple(value));
  if (items.get() == nullptr) {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0) return false;
    PyErr_Clear();
    // An array without dimensions is an index.
    return PyIndex_Check(value) ? read_axis(value, axes[0]) : wrong_type(value);
  }
  const Py_ssize_t length = PyTuple_GET_SIZE(items.get());
  if (length > kMaxRank) {
    PyErr_Format(PyExc_ValueError, "%s: axes names %zd axes; a tensor has at most %d", function,
                 length, kMaxRank);
    return false;
  }
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(items.get(), i);
    if (!(PyIndex_Check(item) ? read_axis(item, axes[i]) : wrong_type(item))) return false;
  }
  count = static_cast<std::size_t>(length);
  return true;
}

}  // namespace dmlops::python
