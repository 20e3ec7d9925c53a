// Tensor views of NumPy arrays, and of objects that share their memory with one.
#include "ndarray.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numpy/arrayobject.h>

#include "core/attributes.hpp"
#include "errors.hpp"
#include "foreign.hpp"
#include "reference.hpp"

namespace dmlops::python {
namespace {

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

// Returns the DataType of each type number of NumPy, which has several for integers of one size;
// unknown for the others.
constexpr std::array<DataType, NPY_HALF + 1> data_types() {
  std::array<DataType, NPY_HALF + 1> types = {};
  types[NPY_BYTE] = data_type_of<npy_byte>();
  types[NPY_UBYTE] = data_type_of<npy_ubyte>();
  types[NPY_SHORT] = data_type_of<npy_short>();
  types[NPY_USHORT] = data_type_of<npy_ushort>();
  types[NPY_INT] = data_type_of<npy_int>();
  types[NPY_UINT] = data_type_of<npy_uint>();
  types[NPY_LONG] = data_type_of<npy_long>();
  types[NPY_ULONG] = data_type_of<npy_ulong>();
  types[NPY_LONGLONG] = data_type_of<npy_longlong>();
  types[NPY_ULONGLONG] = data_type_of<npy_ulonglong>();
  types[NPY_HALF] = DataType::float16;
  types[NPY_FLOAT] = DataType::float32;
  types[NPY_DOUBLE] = DataType::float64;
  if (sizeof(npy_longdouble) == sizeof(double)) types[NPY_LONGDOUBLE] = DataType::float64;
  return types;
}
constexpr std::array<DataType, NPY_HALF + 1> kDataTypes = data_types();

DataType data_type(PyArray_Descr* descr) {
  const auto number = static_cast<unsigned int>(descr->type_num);
  return number < kDataTypes.size() ? kDataTypes[number] : DataType::unknown;
}

// Returns false with a Python error set for a PyTorch tensor with the negative bit: its elements
// are those in memory with the opposite sign, and PyTorch's DLPack export drops the bit.
bool require_not_negated(const char* function, const char* argument, PyObject* value) {
  const int is_tensor = has_attribute(value, "is_neg");
  if (is_tensor <= 0) return is_tensor == 0;
  const Reference is_negated(PyObject_CallMethod(value, "is_neg", nullptr));
  if (!is_negated) return false;
  if (is_negated.get() == Py_True) refuse_negated(function, argument);
  return is_negated.get() != Py_True;
}

// True if NumPy has allocated the memory of a DLPack tensor, as for a null pointer: PyTorch's fake
// tensors have no elements in memory.
bool has_new_memory(PyArrayObject* array) {
  return PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) != 0 && PyArray_SIZE(array) > 0;
}

// Returns the dtype and the number of dimensions for advice.
DMLOPS_COLD Required required_of(const InputArray* like) {
  return like == nullptr ? Required() : Required{name(like->view().type), like->view().rank};
}

// Returns a new reference to a value that is an ndarray of a subclass, or to an array that shares
// the value's memory through DLPack or the buffer protocol. The array of a NumPy scalar is a copy.
// Sets `foreign` to the value if results should have its type.
DMLOPS_COLD PyObject* share(const char* function, const char* argument, PyObject* value,
                            const char* accepted, const InputArray* like, PyObject*& foreign) {
  if (PyArray_Check(value)) {
    if (!require_unmasked(function, argument, value)) return nullptr;
    Py_INCREF(value);
    return value;
  }
  if (PyArray_IsScalar(value, Generic)) {
    PyObject* const copy = PyArray_FromScalar(value, nullptr);
    if (copy == nullptr) return nullptr;
    PyArray_CLEARFLAGS(as_array(copy), NPY_ARRAY_WRITEABLE);
    foreign = value;
    return copy;
  }
  const int offers_dlpack = PyType_Check(value) ? 0 : has_attribute(value, "__dlpack__");
  if (offers_dlpack < 0) return nullptr;
  PyObject* array = nullptr;
  if (offers_dlpack != 0) {
    if (!require_not_negated(function, argument, value)) return nullptr;
    const Reference numpy(PyImport_ImportModule("numpy"));
    if (!numpy) return nullptr;
    array = PyObject_CallMethod(numpy.get(), "from_dlpack", "O", value);
    if (array != nullptr && has_new_memory(as_array(array))) {
      Py_CLEAR(array);
      PyErr_SetString(PyExc_BufferError, "the data pointer is null");
    }
  } else if (PyObject_CheckBuffer(value) != 0) {
    const Reference memory(PyMemoryView_FromObject(value));
    if (memory) array = PyArray_FROM_O(memory.get());
  }
  if (array != nullptr) {
    if (offers_dlpack != 0) foreign = value;
  } else if (PyErr_Occurred() == nullptr || value_is_at_fault()) {
    refuse_value(function, argument, value, accepted, required_of(like));
  }
  return array;
}

// Returns a new array in the memory order of another, aligned so that JAX can share the memory; JAX
// copies arrays of less alignment.
DMLOPS_COLD PyObject* new_aligned_array(PyArrayObject* like) {
  constexpr std::uintptr_t alignment = 64;
  const auto padding = [](const void* data) {
    return static_cast<npy_intp>(-reinterpret_cast<std::uintptr_t>(data) % alignment);
  };
  PyObject* const unaligned = PyArray_NewLikeArray(like, NPY_KEEPORDER, nullptr, 0);
  if (unaligned == nullptr || padding(PyArray_DATA(as_array(unaligned))) == 0) return unaligned;
  npy_intp strides[kMaxRank];
  std::copy_n(PyArray_STRIDES(as_array(unaligned)), PyArray_NDIM(like), strides);
  Py_DECREF(unaligned);
  npy_intp bytes = PyArray_NBYTES(like) + static_cast<npy_intp>(alignment);
  PyObject* const memory = PyArray_SimpleNew(1, &bytes, NPY_UINT8);
  if (memory == nullptr) return nullptr;
  char* const data = PyArray_BYTES(as_array(memory));
  PyArray_Descr* const descr = PyArray_DESCR(like);
  Py_INCREF(descr);  // owned by the new array
  PyObject* const result =
      PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(like), PyArray_DIMS(like), strides,
                           data + padding(data), NPY_ARRAY_WRITEABLE, nullptr);
  if (result == nullptr) {
    Py_DECREF(memory);
    return nullptr;
  }
  if (PyArray_SetBaseObject(as_array(result), memory) == 0) return result;
  Py_DECREF(result);  // PyArray_SetBaseObject has freed the memory
  return nullptr;
}

// Sets the error for an array of a wrong type or rank.
DMLOPS_COLD bool refuse_array(const char* function, const char* argument, PyObject* value,
                              PyArrayObject* array, const AcceptedTypes& accepted,
                              const InputArray* like) {
  const DataType type = data_type(PyArray_DESCR(array));
  const bool is_accepted = like == nullptr ? accepted.has(type) : type == like->view().type;
  if (!is_accepted || !PyArray_ISNOTSWAPPED(array)) {
    refuse_dtype(function, argument, value, reinterpret_cast<PyObject*>(PyArray_DESCR(array)),
                 accepted.text, required_of(like), is_accepted);
  } else {
    PyErr_Format(PyExc_ValueError, "%s: %s has %d dimensions; at most %d are supported", function,
                 argument, PyArray_NDIM(array), kMaxRank);
  }
  return false;
}

}  // namespace

bool is_array(PyObject* object) { return PyArray_Check(object); }

bool import_numpy() { return PyArray_ImportNumPyAPI() == 0; }

template <class View>
bool Array<View>::read_input(const char* function, const char* argument, PyObject* value,
                             const AcceptedTypes& accepted, const InputArray* like) {
  if (PyArray_CheckExact(value)) {
    Py_INCREF(value);
    object_ = value;
  } else {
    object_ = share(function, argument, value, accepted.text, like, foreign_);
    if (object_ == nullptr) return false;
  }
  return set_view(function, argument, value, accepted, like);
}

template <class View>
bool Array<View>::read_output(const char* function, PyObject* out, const InputArray& like,
                              const AcceptedTypes& accepted, const OutputName& name) {
  if (out == nullptr || out == Py_None) {
    foreign_ = like.foreign();
    object_ = foreign_ == nullptr
                  ? PyArray_NewLikeArray(as_array(like.object()), NPY_KEEPORDER, nullptr, 0)
                  : new_aligned_array(as_array(like.object()));
    return object_ != nullptr && set_view(function, name.python, object_, accepted, nullptr);
  }
  if (!read_input(function, name.python, out, accepted, &like)) return false;
  if (foreign_ != nullptr && PyArray_IsScalar(out, Generic)) {
    refuse_value(function, name.python, out, accepted.text);
    return false;
  }
  if (!PyArray_ISWRITEABLE(as_array(object_))) {
    PyErr_Format(PyExc_ValueError, "%s: %s is read-only%s", function, name.python,
                 foreign_ == nullptr ? "" : "; DLPack below 1.0 shares memory read-only");
    return false;
  }
  foreign_ = nullptr;
  if (object_ != out) {  // returns the object that was passed
    Py_INCREF(out);
    kept_alive_ = std::exchange(object_, out);
  }
  return true;
}

template <class View>
bool Array<View>::set_view(const char* function, const char* argument, PyObject* value,
                           const AcceptedTypes& accepted, const InputArray* like) {
  PyArrayObject* const array = as_array(object_);
  const DataType type = data_type(PyArray_DESCR(array));
  const int rank = PyArray_NDIM(array);
  if (!accepted.has(type) || !PyArray_ISNOTSWAPPED(array) ||
      (like != nullptr && type != like->view().type) || rank > kMaxRank) {
    return refuse_array(function, argument, value, array, accepted, like);
  }
  View& view = view_.emplace(PyArray_DATA(array), type, rank, Dimensions{}, Dimensions{});
  for (int d = 0; d < rank; ++d) {
    view.sizes[static_cast<std::size_t>(d)] = PyArray_DIM(array, d);
    view.strides[static_cast<std::size_t>(d)] = PyArray_STRIDE(array, d);
  }
  return true;
}

template <class View>
DMLOPS_COLD void Array<View>::release_quietly() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  Py_XDECREF(object_);
  Py_XDECREF(kept_alive_);
  PyErr_Restore(type, value, traceback);
}

template <class View>
PyObject* Array<View>::take_result() {
  if (kept_alive_ != nullptr && !count_write(object_)) return nullptr;
  PyObject* const result = release();
  if (foreign_ == nullptr) return result;
  if (PyArray_IsScalar(foreign_, Generic)) return PyArray_Return(as_array(result));
  return wrap_like(result, foreign_);
}

bool DenseMemory::read(PyObject* value, DataType type) {
  if (!PyArray_CheckExact(value)) return false;
  PyArrayObject* const array = as_array(value);
  if (!PyArray_IS_C_CONTIGUOUS(array) || data_type(PyArray_DESCR(array)) != type ||
      !PyArray_ISNOTSWAPPED(array)) {
    return false;
  }
  data = PyArray_DATA(array);
  size_in_bytes = element_size(type);
  for (int d = 0; d < PyArray_NDIM(array); ++d) {
    size_in_bytes *= static_cast<std::uint64_t>(PyArray_DIM(array, d));
  }
  writable = PyArray_ISWRITEABLE(array) != 0;
  rank = PyArray_NDIM(array);
  sizes = PyArray_DIMS(array);
  return true;
}

bool Memory::read(const char* function, const char* argument, PyObject* value,
                  const char* accepted) {
  bool has_references = false;
  if (!PyArray_Check(value) && PyObject_CheckBuffer(value) != 0) {
    object_ = PyMemoryView_FromObject(value);
    if (object_ == nullptr) {
      if (value_is_at_fault()) refuse_value(function, argument, value, accepted);
      return false;
    }
    const Py_buffer& view = *PyMemoryView_GET_BUFFER(object_);
    data = view.buf;
    size_in_bytes = static_cast<std::uint64_t>(view.len);
    contiguous = PyBuffer_IsContiguous(&view, 'A') != 0;
    writable = view.readonly == 0;
    has_references = view.format != nullptr && std::strchr(view.format, 'O') != nullptr;
  } else {
    PyObject* foreign = nullptr;
    object_ = share(function, argument, value, accepted, nullptr, foreign);
    if (object_ == nullptr) return false;
    PyArrayObject* const array = as_array(object_);
    data = PyArray_DATA(array);
    size_in_bytes = static_cast<std::uint64_t>(PyArray_NBYTES(array));
    contiguous = PyArray_IS_C_CONTIGUOUS(array) || PyArray_IS_F_CONTIGUOUS(array);
    writable = PyArray_ISWRITEABLE(array) != 0;
    has_references = PyDataType_REFCHK(PyArray_DESCR(array));
  }
  if (!has_references) return true;
  PyErr_Format(PyExc_TypeError, "%s: %s is bound to memory that holds Python objects", function,
               argument);
  return false;
}

template <class View>
bool Array<View>::is_writable() const {
  return PyArray_ISWRITEABLE(as_array(object_)) != 0;
}

template class Array<ConstTensorView>;
template class Array<TensorView>;

}  // namespace dmlops::python
