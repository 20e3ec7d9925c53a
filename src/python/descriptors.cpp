// Python's descriptors as C++ ones, by the fields' names.
#include "descriptors.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "arguments.hpp"
#include "dmlops/device.hpp"
#include "float16.hpp"
#include "float_environment.hpp"

namespace py = pybind11;

namespace dmlops::python {
namespace {

PyObject* validation_error = nullptr;
PyObject* binding_error = nullptr;

[[noreturn]] void refuse_type(const std::string& where, const char* expected, py::handle value) {
  throw py::type_error(where + " must be " + expected + ", not " + Py_TYPE(value.ptr())->tp_name);
}

[[noreturn]] void refuse_value(const std::string& where, py::handle value,
                               const std::string& type) {
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(value.ptr()));
  if (!text) PyErr_Clear();  // an integer of thousands of digits
  throw ValidationError(where + " is " + (text ? text.cast<std::string>() : "a number") +
                        ", which does not fit " + type);
}

// A whole number that fits T, which DirectML calls `type`.
template <class T>
T read_whole(const std::string& where, py::handle value, const std::string& type) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) {
    PyErr_Clear();
    refuse_type(where, "an integer", value);
  }
  T result = 0;
  if constexpr (std::is_signed_v<T>) {
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    result = static_cast<T>(wide);
    if (overflow != 0 || result != wide) refuse_value(where, value, type);
  } else {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(index.ptr());
    const bool failed = PyErr_Occurred() != nullptr;
    PyErr_Clear();
    result = static_cast<T>(wide);
    if (failed || result != wide) refuse_value(where, value, type);
  }
  return result;
}

std::uint32_t read_uint(const std::string& where, py::handle value) {
  return read_whole<std::uint32_t>(where, value, "UINT");
}

double read_double(const std::string& where, py::handle value) {
  const double result = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() == nullptr) return result;
  const bool too_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
  PyErr_Clear();
  if (too_large) refuse_value(where, value, "FLOAT");
  refuse_type(where, "a number", value);
}

float read_float(const std::string& where, py::handle value) {
  const double wide = read_double(where, value);
  const auto result = static_cast<float>(wide);
  if (std::isinf(result) && !std::isinf(wide)) refuse_value(where, value, "FLOAT");
  return result;
}

template <class T>
ScalarUnion union_of(T value) {
  ScalarUnion result;
  std::memcpy(&result.bits, &value, sizeof value);
  return result;
}

// A value in the type that min_max_data_type says; integers exactly.
ScalarUnion read_scalar(const std::string& where, py::handle value, DataType type) {
  const std::string type_name = upper_name(type);
  switch (type) {
    case DataType::int8:
      return union_of(read_whole<std::int8_t>(where, value, type_name));
    case DataType::int16:
      return union_of(read_whole<std::int16_t>(where, value, type_name));
    case DataType::int32:
      return union_of(read_whole<std::int32_t>(where, value, type_name));
    case DataType::int64:
      return union_of(read_whole<std::int64_t>(where, value, type_name));
    case DataType::uint8:
      return union_of(read_whole<std::uint8_t>(where, value, type_name));
    case DataType::uint16:
      return union_of(read_whole<std::uint16_t>(where, value, type_name));
    case DataType::uint32:
      return union_of(read_whole<std::uint32_t>(where, value, type_name));
    case DataType::uint64:
      return union_of(read_whole<std::uint64_t>(where, value, type_name));
    case DataType::float32:
      return union_of(read_float(where, value));
    case DataType::float16:
      return union_of(to_float16(read_double(where, value)));
    default:
      return union_of(read_double(where, value));
  }
}

// A tuple of as many UINT as the array holds; the count may be greater.
std::uint32_t read_dimensions(const std::string& where, py::handle values,
                              BufferTensorDesc::Dimensions& result) {
  const auto items = py::reinterpret_steal<py::object>(PySequence_Tuple(values.ptr()));
  if (!items) {
    PyErr_Clear();
    refuse_type(where, "a sequence of integers", values);
  }
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()));
  for (std::size_t i = 0; i < count && i < result.size(); ++i) {
    result[i] = read_uint(where + "[" + std::to_string(i) + "]",
                          PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)));
  }
  return static_cast<std::uint32_t>(count);
}

BufferTensorDesc read_tensor(const std::string& where, const py::object& value) {
  if (!py::hasattr(value, "guaranteed_base_offset_alignment")) {
    refuse_type(where, "a BufferTensorDesc or None", value);
  }
  BufferTensorDesc tensor;
  tensor.data_type =
      static_cast<DataType>(read_uint(where + ".data_type", value.attr("data_type")));
  tensor.flags = static_cast<TensorFlags>(read_uint(where + ".flags", value.attr("flags")));
  tensor.dimension_count = read_dimensions(where + ".sizes", value.attr("sizes"), tensor.sizes);
  const py::object strides = value.attr("strides");
  if (!strides.is_none()) {
    const std::uint32_t count =
        read_dimensions(where + ".strides", strides, tensor.strides.emplace());
    if (count != tensor.dimension_count) {
      throw ValidationError(where + " has " + std::to_string(count) + " strides for " +
                            std::to_string(tensor.dimension_count) + " dimensions");
    }
  }
  const py::object total = value.attr("total_tensor_size_in_bytes");
  if (!total.is_none()) {
    tensor.total_tensor_size_in_bytes =
        read_whole<std::uint64_t>(where + ".total_tensor_size_in_bytes", total, "UINT64");
  }
  tensor.guaranteed_base_offset_alignment = read_uint(
      where + ".guaranteed_base_offset_alignment", value.attr("guaranteed_base_offset_alignment"));
  return tensor;
}

std::optional<ScaleBias> read_scale_bias(const std::string& where, const py::object& value) {
  if (value.is_none()) return std::nullopt;
  if (!py::hasattr(value, "scale") || !py::hasattr(value, "bias")) {
    refuse_type(where, "a ScaleBias or None", value);
  }
  return ScaleBias{read_float(where + ".scale", value.attr("scale")),
                   read_float(where + ".bias", value.attr("bias"))};
}

std::vector<std::uint32_t> read_axes(const std::string& where, const py::object& value) {
  std::vector<std::uint32_t> axes;
  for (const py::handle item : value) axes.push_back(read_uint(where, item));
  return axes;
}

// Reads the fields one after another, each into the next place of its kind.
class Reader {
 public:
  Reader(const OperatorInfo& op, const py::object& desc) : op_(op), source_(desc) {
    result_.type = op.type;
    for (const Field& field : fields(op)) read(field);
  }
  OperatorDesc take() { return std::move(result_); }

 private:
  void read(const Field& field) {
    const py::object value = source_.attr(field.name);
    const std::string where = std::string(op_.name) + ": " + field.name;
    switch (field.kind) {
      case FieldKind::tensor:
        if (!value.is_none()) result_.tensors[tensors_] = read_tensor(where, value);
        ++tensors_;
        break;
      case FieldKind::number:
        result_.numbers[numbers_++] = read_float(where, value);
        break;
      case FieldKind::scalar:
        result_.scalars[scalars_++] = read_scalar(where, value, result_.min_max_data_type);
        break;
      case FieldKind::data_type:
        result_.min_max_data_type = static_cast<DataType>(read_uint(where, value));
        break;
      case FieldKind::scale_bias:
        result_.scale_bias = read_scale_bias(where, value);
        break;
      case FieldKind::boolean:
        result_.spatial = py::bool_(value);
        break;
      case FieldKind::axes:
        result_.axes = read_axes(where, value);
        break;
      case FieldKind::activation:
        if (value.is_none()) break;
        if (!py::hasattr(value, "operator_type")) {
          refuse_type(where, "the descriptor of an activation or None", value);
        }
        // Only activations can be read here: what nests deeper is refused by its type alone.
        result_.fused_activation = std::make_shared<const OperatorDesc>(read_fused(value));
        break;
    }
  }

  static OperatorDesc read_fused(const py::object& value) {
    OperatorDesc fused;
    fused.type = static_cast<OperatorType>(read_uint("operator_type", value.attr("operator_type")));
    const OperatorInfo* const op = find_operator(fused.type);
    return op == nullptr || !op->fusable() ? fused : Reader(*op, value).take();
  }

  const OperatorInfo& op_;
  const py::object& source_;
  OperatorDesc result_;
  std::size_t tensors_ = 0, numbers_ = 0, scalars_ = 0;
};

std::uint64_t tensor_size(const py::object& tensor) {
  return calc_buffer_tensor_size(read_tensor("calc_buffer_tensor_size: the tensor", tensor));
}

}  // namespace

OperatorDesc read_desc(const py::object& desc) {
  const FloatEnvironment environment;  // numbers are rounded to FLOAT
  const OperatorInfo* op = nullptr;
  if (py::hasattr(desc, "operator_type")) {
    const std::uint32_t type = read_uint("operator_type", desc.attr("operator_type"));
    op = find_operator(static_cast<OperatorType>(type));
  }
  if (op == nullptr) refuse_type("desc", "the descriptor of an operator", desc);
  return Reader(*op, desc).take();
}

void add_descriptors(py::module_& module) {
  validation_error =
      py::register_exception<ValidationError>(module, "ValidationError", PyExc_ValueError).ptr();
  binding_error =
      py::register_exception<BindingError>(module, "BindingError", PyExc_ValueError).ptr();
  module.def("validate", [](const py::object& desc, std::uint32_t level) {
    validate(read_desc(desc), Device(static_cast<FeatureLevel>(level)).feature_level());
  });
  module.def("required_feature_level", [](const py::object& desc) {
    return static_cast<std::uint32_t>(required_feature_level(read_desc(desc)));
  });
  module.def("calc_buffer_tensor_size", &tensor_size);
}

PyObject* set_descriptor_error() {
  try {
    throw;
  } catch (const ValidationError& error) {
    PyErr_SetString(validation_error, error.what());
  } catch (const BindingError& error) {
    PyErr_SetString(binding_error, error.what());
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (...) {
    set_error();
  }
  return nullptr;
}

}  // namespace dmlops::python
