// Reads bindings: arrays, buffers and BufferBindings, as ranges of bytes.
#pragma once

#include <new>

#include <Python.h>

#include "descriptors/compile.hpp"
#include "ndarray.hpp"

namespace dmlops::python {

// The bindings of an operator's inputs or outputs: a sequence in the order of the struct's fields,
// or a dictionary by name; None is no binding. Keeps the memory alive.
class Bindings {
 public:
  static constexpr int kMaxCount = OperatorDesc::kMaxTensors;

  // Bindings of `count` tensors from `first` on; `tensors` are the operator's.
  Bindings(const OperatorInfo& op, const BufferTensorDesc* tensors, int first, int count)
      : op_(op), tensors_(tensors), first_(first), count_(count) {
    for (int i = 0; i < count_; ++i) {
      new (bindings_ + i) ConstBinding;
      kept_[i] = nullptr;
    }
  }
  ~Bindings() {
    for (int i = 0; i < count_; ++i) Py_XDECREF(kept_[i]);
  }
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  // Reads the bindings. Throws, or sets a Python error and returns false.
  bool read(const char* argument, PyObject* value);

  // Tells other libraries that their outputs have been written. Returns false with a Python error
  // set.
  bool count_writes() const;

  std::size_t given() const { return given_; }
  const ConstBinding* data() const { return bindings_; }

 private:
  bool is_output() const { return first_ > 0; }
  bool read_sequence(PyObject* values);
  int find(PyObject* key) const;  // -1: no tensor of that name
  bool read_dictionary(const char* argument, PyObject* values);
  bool read_one(int i, PyObject* value);
  bool read_buffer_binding(int i, PyObject* value);
  bool read_memory(int i, PyObject* value);
  bool read_array(int i, PyObject* value);
  bool keep(int i, PyObject* array, PyObject* value);
  [[noreturn]] void refuse(int i, const std::string& what) const;

  const OperatorInfo& op_;
  const BufferTensorDesc* tensors_;
  int first_, count_;
  std::size_t given_ = 0;
  // Entries past `count_` are uninitialized; clearing them would take as long as a small operator.
  union {  // NOLINTNEXTLINE(readability-identifier-naming): a member of this class like the others
    ConstBinding bindings_[kMaxCount];
  };
  // References to the arrays; for an output through DLPack, to a pair of the array and the value.
  PyObject* kept_[kMaxCount];
};

}  // namespace dmlops::python
