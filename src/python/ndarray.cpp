// NumPy arrays, and what can be seen as one without a copy, as tensor views.
#include "ndarray.hpp"

#include <numpy/arrayobject.h>

#include "cold.hpp"
#include "errors.hpp"

namespace dmlops::python {
namespace {

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

// By kind and size: C has more integer types than there are sizes.
DataType data_type(PyArray_Descr* descr) {
  const auto size = static_cast<std::size_t>(PyDataType_ELSIZE(descr));
  const auto of_size = [size](DataType one, DataType two, DataType four, DataType eight) {
    switch (size) {
      case 1:
        return one;
      case 2:
        return two;
      case 4:
        return four;
      case 8:
        return eight;
      default:
        return DataType::unknown;
    }
  };
  switch (descr->kind) {
    case 'f':
      return of_size(DataType::unknown, DataType::float16, DataType::float32, DataType::float64);
    case 'i':
      return of_size(DataType::int8, DataType::int16, DataType::int32, DataType::int64);
    case 'u':
      return of_size(DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64);
    default:
      return DataType::unknown;
  }
}

// NumPy says what it cannot take from DLPack, but not of which argument.
void explain_dlpack(const char* function, const char* argument) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_Format(PyExc_BufferError,
               "%s: %s cannot be shared from the CPU's memory through DLPack: %S", function,
               argument, value == nullptr ? type : value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

// An array that shares the memory of what DLPack or the buffer protocol offers; a new reference.
DMLOPS_COLD PyObject* share(const char* function, const char* argument, PyObject* value) {
  const int offers_dlpack = has_attribute(value, "__dlpack__");
  if (offers_dlpack < 0) return nullptr;
  if (offers_dlpack != 0) {
    PyObject* const numpy = PyImport_ImportModule("numpy");
    if (numpy == nullptr) return nullptr;
    PyObject* const array = PyObject_CallMethod(numpy, "from_dlpack", "O", value);
    Py_DECREF(numpy);
    if (array == nullptr && value_is_at_fault()) explain_dlpack(function, argument);
    return array;
  }
  if (PyObject_CheckBuffer(value) != 0) {
    PyObject* const memory = PyMemoryView_FromObject(value);
    if (memory == nullptr) return nullptr;
    PyObject* const array = PyArray_FROM_O(memory);
    Py_DECREF(memory);
    return array;
  }
  const int is_foreign = has_attribute(value, "__array_namespace__");
  if (is_foreign < 0) return nullptr;
  if (is_foreign != 0) {
    PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    PyErr_Format(PyExc_TypeError,
                 "%s: %s is an array of another library, %S, that offers neither DLPack nor the "
                 "buffer protocol; convert it to a numpy.ndarray with that library's own means",
                 function, argument, type);
    return nullptr;
  }
  PyErr_Format(PyExc_TypeError,
               "%s: %s must be a numpy.ndarray, or offer DLPack or the buffer protocol, not %s; "
               "numpy.asarray converts",
               function, argument, Py_TYPE(value)->tp_name);
  return nullptr;
}

DMLOPS_COLD bool refuse_dtype(const char* function, const char* argument, PyArray_Descr* descr,
                              const char* accepted) {
  PyObject* const dtype = PyObject_GetAttrString(reinterpret_cast<PyObject*>(descr), "name");
  if (dtype == nullptr) return false;
  PyErr_Format(PyExc_TypeError, "%s: %s has dtype %S; it takes %s", function, argument, dtype,
               accepted);
  Py_DECREF(dtype);
  return false;
}

DMLOPS_COLD bool refuse_byte_order(const char* function, const char* argument,
                                   PyArray_Descr* descr) {
  PyErr_Format(PyExc_TypeError,
               "%s: %s has dtype %S, whose bytes are not in this machine's order; use astype(%s)",
               function, argument, descr, name(data_type(descr)));
  return false;
}

DMLOPS_COLD bool refuse_rank(const char* function, const char* argument, int rank) {
  PyErr_Format(PyExc_ValueError, "%s: %s has %d dimensions; at most %d are supported", function,
               argument, rank, kMaxRank);
  return false;
}

}  // namespace

bool is_array(PyObject* object) { return PyArray_Check(object); }

bool import_numpy() { return PyArray_ImportNumPyAPI() == 0; }

template <class View>
bool Array<View>::read_input(const char* function, const char* argument, PyObject* value,
                             const char* accepted) {
  if (PyArray_Check(value)) {
    Py_INCREF(value);
    object_ = value;
  } else {
    object_ = share(function, argument, value);
    if (object_ == nullptr) return false;
  }
  return set_view(function, argument, accepted);
}

template <class View>
bool Array<View>::read_output(const char* function, PyObject* out, const InputArray& input,
                              const char* accepted) {
  if (out == nullptr || out == Py_None) {
    object_ = PyArray_NewLikeArray(as_array(input.object()), NPY_KEEPORDER, nullptr, 0);
    return object_ != nullptr && set_view(function, "out", accepted);
  }
  if (!read_input(function, "out", out, accepted)) return false;
  if (PyArray_ISWRITEABLE(as_array(object_))) {
    if (object_ != out) {  // what is returned is what was given
      Py_INCREF(out);
      kept_alive_ = std::exchange(object_, out);
    }
    return true;
  }
  PyErr_Format(PyExc_ValueError, "%s: out is read-only", function);
  return false;
}

template <class View>
bool Array<View>::set_view(const char* function, const char* argument, const char* accepted) {
  PyArrayObject* const array = as_array(object_);
  PyArray_Descr* const descr = PyArray_DESCR(array);
  view_.type = data_type(descr);
  if (view_.type == DataType::unknown) return refuse_dtype(function, argument, descr, accepted);
  if (!PyArray_ISNOTSWAPPED(array)) return refuse_byte_order(function, argument, descr);
  view_.rank = PyArray_NDIM(array);
  if (view_.rank > kMaxRank) return refuse_rank(function, argument, view_.rank);
  view_.data = PyArray_DATA(array);
  for (int d = 0; d < view_.rank; ++d) {
    view_.sizes[static_cast<std::size_t>(d)] = PyArray_DIM(array, d);
    view_.strides[static_cast<std::size_t>(d)] = PyArray_STRIDE(array, d);
  }
  return true;
}

bool DenseMemory::read(PyObject* value, DataType type) {
  if (!PyArray_Check(value)) return false;
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
  return true;
}

template <class View>
bool Array<View>::is_writable() const {
  return PyArray_ISWRITEABLE(as_array(object_)) != 0;
}

template class Array<ConstTensorView>;
template class Array<TensorView>;

}  // namespace dmlops::python
