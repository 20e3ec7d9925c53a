// Reads `out`, runs an operator without the GIL, and returns its output or a tuple of its outputs.
#pragma once

#include <string>

#include "arguments.hpp"
#include "core/attributes.hpp"
#include "core/text.hpp"
#include "core/views.hpp"
#include "gil.hpp"
#include "ndarray.hpp"

namespace dmlops::python {

inline std::int64_t element_count(const ConstTensorView& view) {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < rank_of(view); ++d) elements *= view.sizes[d];
  return elements;
}

// Returns false with a Python error set if `operate` throws.
template <class Operate>
bool run_without_gil(const InputArray& input, const Operate& operate) {
  try {
    const GilReleased released(element_count(input.view()));
    operate();
    return true;
  } catch (...) {
    set_error();  // holds the GIL again
    return false;
  }
}

// Runs `operate`, and returns the output.
template <class Operate>
PyObject* finish(const InputArray& input, OutputArray& output, const Operate& operate) {
  if (!run_without_gil(input, operate)) return nullptr;
  return output.take_result();
}

// The outputs of an operator that has several; `out` is a tuple of them.
constexpr int kOutputs = 3;

// Sets a TypeError for `out`, which is not a tuple of kOutputs elements.
DMLOPS_COLD inline void refuse_outputs(const char* function, PyObject* value,
                                       const OutputName (&names)[kOutputs]) {
  std::string needed = concat("a tuple of ", kOutputs, " arrays or None");
  for (int i = 0; i < kOutputs; ++i) needed += concat(i == 0 ? " (" : ", ", names[i].cpp);
  const std::string given = PyTuple_Check(value) ? concat("a tuple of ", PyTuple_GET_SIZE(value))
                                                 : Py_TYPE(value)->tp_name;
  PyErr_Format(PyExc_TypeError, "%s: out must be %s), not %s", function, needed.c_str(),
               given.c_str());
}

// `like`: the inputs whose shapes the outputs have.
inline bool read_outputs(const char* function, PyObject* value, const OutputName (&names)[kOutputs],
                         const InputArray* const (&like)[kOutputs],
                         OutputArray (&outputs)[kOutputs]) {
  const bool given = is_given(value);
  if (given && (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != kOutputs)) {
    refuse_outputs(function, value, names);
    return false;
  }
  for (int i = 0; i < kOutputs; ++i) {
    PyObject* const out = given ? PyTuple_GET_ITEM(value, i) : nullptr;
    if (!outputs[i].read_output(function, out, *like[i], kFloats, names[i])) return false;
  }
  return true;
}

// Runs `operate`, and returns the outputs as a tuple.
template <class Operate>
PyObject* finish(const InputArray& input, OutputArray (&outputs)[kOutputs],
                 const Operate& operate) {
  if (!run_without_gil(input, operate)) return nullptr;
  PyObject* const results = PyTuple_New(kOutputs);
  for (int i = 0; results != nullptr && i < kOutputs; ++i) {
    PyObject* const result = outputs[i].take_result();
    if (result == nullptr) {
      Py_DECREF(results);
      return nullptr;
    }
    PyTuple_SET_ITEM(results, i, result);
  }
  return results;
}

}  // namespace dmlops::python
