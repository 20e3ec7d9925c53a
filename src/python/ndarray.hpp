// Tensor views of NumPy arrays, and of objects that share their memory with one.
#pragma once

#include <optional>
#include <utility>

#include <Python.h>

#include "dmlops/tensor.hpp"
#include "operators/check.hpp"

namespace dmlops::python {

// Called once, when the module is imported. Returns false with a Python error set.
bool import_numpy();

// The memory of a C-contiguous array.
struct DenseMemory {
  void* data = nullptr;
  std::uint64_t size_in_bytes = 0;
  bool writable = false;
  int rank = 0;
  const Py_ssize_t* sizes = nullptr;  // owned by the array

  // Returns false without an error for anything but a C-contiguous array of that type.
  bool read(PyObject* value, DataType type);
};

// Memory of any type, of an object that offers it as an array, the buffer protocol or DLPack.
class Memory {
 public:
  Memory() = default;
  ~Memory() { Py_XDECREF(object_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Returns false with a Python error set; `accepted` is the dtype of an array that it advises.
  bool read(const char* function, const char* argument, PyObject* value, const char* accepted);
  PyObject* release() { return std::exchange(object_, nullptr); }  // transfers the reference

  void* data = nullptr;
  std::uint64_t size_in_bytes = 0;
  bool contiguous = false, writable = false;

 private:
  PyObject* object_ = nullptr;  // keeps the memory alive
};

bool is_array(PyObject* object);

constexpr AcceptedTypes kAllTypes = {((1u << kDataTypeCount) - 1) & ~1u, "every dtype of DirectML"};

// A reference to an array, and the view of it: `View` is ConstTensorView or TensorView.
template <class View>
class Array {
 public:
  // NOLINTNEXTLINE(modernize-use-equals-default): as a constant, GCC would clear all of it
  Array() {}
  ~Array() {
    if (foreign_ != nullptr || kept_alive_ != nullptr) {
      release_quietly();
    } else {
      Py_XDECREF(object_);
    }
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  // Each returns false with a Python error set.
  // `like` is the array whose dtype the argument must have, or null.
  bool read_input(const char* function, const char* argument, PyObject* value,
                  const AcceptedTypes& accepted = kFloats,
                  const Array<ConstTensorView>* like = nullptr);
  // Reads `out`, or, if null or None, creates an array in the memory order of `like`.
  bool read_output(const char* function, PyObject* out, const Array<ConstTensorView>& like,
                   const AcceptedTypes& accepted = kFloats, const OutputName& name = kOutput);

  const View& view() const { return *view_; }
  PyObject* object() const { return object_; }
  bool is_writable() const;
  // The value that was read, if it is a NumPy scalar or another library's array; null otherwise.
  PyObject* foreign() const { return foreign_; }
  PyObject* release() { return std::exchange(object_, nullptr); }  // transfers the reference
  // For outputs: transfers the reference to `out`, or to a new array of the input's type. Returns
  // null with a Python error set.
  PyObject* take_result();

 private:
  bool set_view(const char* function, const char* argument, PyObject* value,
                const AcceptedTypes& accepted, const Array<ConstTensorView>* like);

  // Releases the references, and keeps a pending error: another library's memory may be released by
  // Python code.
  void release_quietly();

  PyObject* object_ = nullptr;
  PyObject* foreign_ = nullptr;     // borrowed; for a new output, the input
  PyObject* kept_alive_ = nullptr;  // an array on the memory of an `out` of another library
  std::optional<View> view_;        // set when it is read: clearing it takes 7 ns
};

using InputArray = Array<ConstTensorView>;
using OutputArray = Array<TensorView>;

}  // namespace dmlops::python
