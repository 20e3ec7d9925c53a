// NumPy arrays, and what can be seen as one without a copy, as tensor views.
#pragma once

#include <utility>

#include <Python.h>

#include "dmlops/tensor.hpp"
#include "operators/check.hpp"

namespace dmlops::python {

// To be called once, when the module is imported. False with a Python error set.
bool import_numpy();

// The memory of a C-contiguous array.
struct DenseMemory {
  void* data = nullptr;
  std::uint64_t size_in_bytes = 0;
  bool writable = false;

  // False, with no error set, for anything but a C-contiguous array of that type.
  bool read(PyObject* value, DataType type);
};

bool is_array(PyObject* object);

// A reference to an array, and the view of it: `View` is ConstTensorView or TensorView.
template <class View>
class Array {
 public:
  Array() = default;
  ~Array() {
    Py_XDECREF(object_);
    Py_XDECREF(kept_alive_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // Each: false with a Python error set. `accepted` names the data types for the message that
  // refuses others.
  bool read_input(const char* function, const char* argument, PyObject* value,
                  const char* accepted = kFloatTypesText);
  // `out`, or where it is null or None, a new array in the memory order of `input`.
  bool read_output(const char* function, PyObject* out, const Array<ConstTensorView>& input,
                   const char* accepted = kFloatTypesText);

  const View& view() const { return view_; }
  PyObject* object() const { return object_; }
  bool is_writable() const;
  PyObject* release() { return std::exchange(object_, nullptr); }  // hands the reference over

 private:
  bool set_view(const char* function, const char* argument, const char* accepted);

  PyObject* object_ = nullptr;
  PyObject* kept_alive_ = nullptr;  // the array over the memory of an `out` that is none itself
  // Sizes and strides behind the rank are not set: that would take as long as a small operator.
  View view_ = View(nullptr, DataType::unknown, 0);
};

using InputArray = Array<ConstTensorView>;
using OutputArray = Array<TensorView>;

}  // namespace dmlops::python
