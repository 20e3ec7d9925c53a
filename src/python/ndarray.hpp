// NumPy arrays, and what can be seen as one without a copy, as tensor views.
#pragma once

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

// A reference to an array, and the view of it.
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
  bool read_output(const char* function, PyObject* out, const Array& input,
                   const char* accepted = kFloatTypesText);

  TensorView view() const { return {data_, type_, rank_, sizes_, strides_}; }
  bool is_writable() const;
  static bool is_array(PyObject* object);
  PyObject* release();  // hands the reference over

 private:
  bool set_view(const char* function, const char* argument, const char* accepted);

  PyObject* object_ = nullptr;
  PyObject* kept_alive_ = nullptr;  // the array over the memory of an `out` that is none itself
  // The view's parts. Where there is no dimension, sizes and strides are not set: that would take
  // as long as a small operator.
  void* data_ = nullptr;
  DataType type_ = DataType::unknown;
  int rank_ = 0;
  Dimensions sizes_, strides_;
};

}  // namespace dmlops::python
