// Reads bindings: arrays, buffers and BufferBindings, as ranges of bytes.
#include "bindings.hpp"

#include <algorithm>
#include <string>

#include "core/text.hpp"
#include "core/views.hpp"
#include "descriptors/tensor.hpp"
#include "errors.hpp"
#include "foreign.hpp"
#include "reference.hpp"

namespace dmlops::python {
namespace {

// Returns the bytes from an array's first element to the end of its last; strides are not negative.
// A binding has this size, never a size that a descriptor claims.
std::uint64_t extent_of(const ConstTensorView& view) {
  std::int64_t bytes = element_bytes(view.type);
  for (std::size_t d = 0; d < rank_of(view); ++d) {
    if (view.sizes[d] == 0) return 0;
    if (view.sizes[d] > 1) bytes += (view.sizes[d] - 1) * view.strides[d];
  }
  return static_cast<std::uint64_t>(bytes);
}

bool is_dense(const ConstTensorView& view) {
  std::int64_t stride = element_bytes(view.type);
  bool dense = true, empty = false;
  for (std::size_t d = rank_of(view); d-- > 0;) {
    dense = dense && (view.sizes[d] == 1 || view.strides[d] == stride);
    empty = empty || view.sizes[d] == 0;
    stride *= view.sizes[d];
  }
  return dense || empty;
}

// True if the array has the tensor's sizes and strides.
bool same_layout(const ConstTensorView& array, const BufferTensorDesc& desc) {
  const TensorView tensor = view_of(desc);
  if (array.type != tensor.type || array.rank != tensor.rank) return false;
  for (std::size_t d = 0; d < rank_of(tensor); ++d) {
    if (array.sizes[d] != tensor.sizes[d]) return false;
    if (array.sizes[d] > 1 && array.strides[d] != tensor.strides[d]) return false;
  }
  return true;
}

// True if an array of these sizes may be bound to the tensor. Arrays of 1 dimension count as
// buffers. A dimension of size 1 matches one that the tensor broadcasts with stride 0.
template <class Size>
bool is_shaped_like(int rank, const Size* sizes, const BufferTensorDesc& tensor) {
  if (rank <= 1) return true;
  if (static_cast<std::uint32_t>(rank) != tensor.dimension_count) return false;
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) {
    const bool broadcasts = sizes[d] == 1 && tensor.strides && (*tensor.strides)[d] == 0;
    if (sizes[d] != static_cast<Size>(tensor.sizes[d]) && !broadcasts) return false;
  }
  return true;
}

constexpr const char* kReadOnly = "is bound to memory that is read-only";

// Returns a new reference, since reading an item can run arbitrary code that removes it from the
// list.
PyObject* item(PyObject* list_or_tuple, Py_ssize_t i) {
  if (PyTuple_Check(list_or_tuple)) return Py_NewRef(PyTuple_GET_ITEM(list_or_tuple, i));
#ifndef Py_GIL_DISABLED
  if (i < PyList_GET_SIZE(list_or_tuple)) return Py_NewRef(PyList_GET_ITEM(list_or_tuple, i));
#endif
  return PySequence_GetItem(list_or_tuple, i);
}

// Reads an attribute as a size; None leaves `result` unchanged. Returns false with a Python error
// set.
bool read_size(PyObject* object, const char* attribute, std::uint64_t& result) {
  const Reference value(PyObject_GetAttrString(object, attribute));
  if (value.get() == nullptr) return false;
  if (value.get() != Py_None) result = PyLong_AsUnsignedLongLong(value.get());
  return PyErr_Occurred() == nullptr;
}

}  // namespace

void Bindings::refuse(int i, const std::string& what) const {
  throw BindingError(concat(op_.name, ": ", tensor_name(op_, first_ + i), " ", what));
}

// Steals the reference to the array that shares the value's memory.
bool Bindings::keep(int i, PyObject* array, PyObject* value) {
  Py_XSETREF(kept_[i], array);
  if (!is_output() || PyObject_CheckBuffer(value) != 0) return true;
  PyObject* const pair = PyTuple_Pack(2, array, value);
  if (pair == nullptr) return false;
  Py_SETREF(kept_[i], pair);
  return true;
}

// An array must have the tensor's type or be bytes, since a float64 array for a float32 tensor is a
// mistake.
bool Bindings::read_array(int i, PyObject* value) {
  ConstBinding& binding = bindings_[i];
  const BufferTensorDesc& tensor = tensors_[first_ + i];
  const AcceptedTypes accepted = {kAllTypes.set, name(tensor.data_type)};  // others are bytes
  InputArray array;
  if (!array.read_input(op_.name, tensor_name(op_, first_ + i), value, accepted)) return false;
  const ConstTensorView& view = array.view();
  if (is_output() && !array.is_writable()) refuse(i, kReadOnly);
  if (view.type != tensor.data_type && element_size(view.type) != 1) {
    refuse_binding(op_.name, tensor_name(op_, first_ + i), value, name(view.type),
                   name(tensor.data_type));
    return false;
  }
  if (view.type == tensor.data_type && !is_shaped_like(view.rank, view.sizes.data(), tensor)) {
    refuse(i, concat("is bound to an array of shape ", shape_text(view), "; the tensor has sizes ",
                     shape_text(view_of(tensor)),
                     "; to bind the memory as it is, pass array.reshape(-1)"));
  }
  if (!is_dense(view) && !same_layout(view, tensor)) {
    refuse(i,
           "is bound to an array that is not contiguous; describe its strides with "
           "BufferTensorDesc.from_array, or bind the array that it is a view of");
  }
  binding.buffer = view.data;
  binding.is_array = true;
  binding.size_in_bytes = extent_of(view);
  return keep(i, array.release(), value);
}

// Reads the memory of a BufferBinding, of any type.
bool Bindings::read_memory(int i, PyObject* value) {
  Memory memory;
  if (!memory.read(op_.name, tensor_name(op_, first_ + i), value,
                   name(tensors_[first_ + i].data_type))) {
    return false;
  }
  if (is_output() && !memory.writable) refuse(i, kReadOnly);
  if (!memory.contiguous) refuse(i, "is bound to memory that is not contiguous");
  bindings_[i].buffer = memory.data;
  bindings_[i].size_in_bytes = memory.size_in_bytes;
  return keep(i, memory.release(), value);
}

// Reads a BufferBinding.
bool Bindings::read_buffer_binding(int i, PyObject* value) {
  const Reference buffer(PyObject_GetAttrString(value, "buffer"));
  ConstBinding& binding = bindings_[i];
  std::uint64_t offset = 0, size = total_size(tensors_[first_ + i]);
  if (buffer.get() == nullptr || !read_memory(i, buffer.get()) ||
      !read_size(value, "offset", offset) || !read_size(value, "size_in_bytes", size)) {
    return false;
  }
  if (offset > binding.size_in_bytes || size > binding.size_in_bytes - offset) {
    const bool fits_whole =
        offset == 0 && binding.size_in_bytes >= required_size(tensors_[first_ + i]);
    refuse(i, concat("is bound to ", counted(size, "byte"), " at offset ", offset,
                     "; the buffer has ", binding.size_in_bytes,
                     fits_whole ? "; to bind all of it, pass it without BufferBinding" : ""));
  }
  binding.offset = offset;
  binding.size_in_bytes = size;
  return true;
}

bool Bindings::read_one(int i, PyObject* value) {
  if (value == Py_None) return true;
  DenseMemory memory;
  const BufferTensorDesc& tensor = tensors_[first_ + i];
  if (tensor.dimension_count == 0) refuse(i, Slot::kAbsentText);
  if (memory.read(value, tensor.data_type) && (memory.writable || !is_output()) &&
      is_shaped_like(memory.rank, memory.sizes, tensor)) {
    bindings_[i].buffer = memory.data;
    bindings_[i].size_in_bytes = memory.size_in_bytes;
    bindings_[i].is_array = true;
    Py_INCREF(value);
    Py_XSETREF(kept_[i], value);
    return true;
  }
  const int is_buffer_binding = is_array(value) ? 0 : has_attribute(value, "size_in_bytes");
  if (is_buffer_binding < 0) return false;
  return is_buffer_binding != 0 ? read_buffer_binding(i, value) : read_array(i, value);
}

bool Bindings::read_sequence(PyObject* values) {
  const Py_ssize_t count =
      PyList_Check(values) ? PyList_GET_SIZE(values) : PyTuple_GET_SIZE(values);
  given_ = static_cast<std::size_t>(count);
  for (int i = 0; i < count_ && i < count; ++i) {
    const Reference value(item(values, i));
    if (value.get() == nullptr || !read_one(i, value.get())) return false;
  }
  return true;
}

int Bindings::find(PyObject* key) const {
  for (int i = 0; i < count_ && PyUnicode_Check(key); ++i) {
    if (PyUnicode_CompareWithASCIIString(key, tensor_name(op_, first_ + i)) == 0) return i;
  }
  return -1;
}

bool Bindings::read_dictionary(const char* argument, PyObject* values) {
  given_ = static_cast<std::size_t>(count_);
  const Reference keys(PyDict_Keys(values));
  if (keys.get() == nullptr) return false;
  unsigned int bound = 0;  // tensors, as bits
  for (Py_ssize_t k = 0; k < PyList_GET_SIZE(keys.get()); ++k) {
    PyObject* const key = PyList_GET_ITEM(keys.get(), k);
    const int i = find(key);
    if (i < 0) {
      const std::string names = joined(static_cast<std::size_t>(count_), [&](std::size_t n) {
        return tensor_name(op_, first_ + static_cast<int>(n));
      });
      const Reference message(PyUnicode_FromFormat("%s: %s has the key %R; it takes %s", op_.name,
                                                   argument, key, names.c_str()));
      const char* const text = message.get() == nullptr ? nullptr : PyUnicode_AsUTF8(message.get());
      if (text == nullptr) return false;
      throw BindingError(text);
    }
    // Keys that differ, such as of a subclass of str, may have the same characters.
    if ((bound & 1u << i) != 0) refuse(i, concat("is bound twice by ", argument));
    bound |= 1u << i;
    const Reference value(PyObject_GetItem(values, key));
    if (value.get() == nullptr || !read_one(i, value.get())) return false;
  }
  return true;
}

bool Bindings::count_writes() const {
  return std::all_of(kept_, kept_ + count_, [](PyObject* kept) {
    return kept == nullptr || !PyTuple_CheckExact(kept) || count_write(PyTuple_GET_ITEM(kept, 1));
  });
}

bool Bindings::read(const char* argument, PyObject* value) {
  if (PyList_Check(value) || PyTuple_Check(value)) return read_sequence(value);
  if (PyDict_Check(value)) return read_dictionary(argument, value);
  PyErr_Format(PyExc_TypeError, "%s: %s must be a list, tuple or dict of bindings, not %s",
               op_.name, argument, Py_TYPE(value)->tp_name);
  return false;
}

}  // namespace dmlops::python
