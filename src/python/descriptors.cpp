// Converts Python's descriptors to C++, by the names of fields.
#include "descriptors.hpp"

#include <string>

#include "arguments.hpp"
#include "core/float_environment.hpp"
#include "core/text.hpp"
#include "descriptors/names.hpp"
#include "dmlops/device.hpp"
#include "errors.hpp"
#include "module.hpp"
#include "values.hpp"

namespace py = pybind11;

namespace dmlops::python {
namespace {

PyObject* validation_error = nullptr;
PyObject* binding_error = nullptr;

bool has(const py::object& value, const char* attribute) {
  const int found = has_attribute(value.ptr(), attribute);
  if (found < 0) throw_python_error();
  return found != 0;
}

// Accepts instances only: a class has attributes, too, the fields' defaults.
bool is_operator_desc(const py::object& value) {
  return !PyType_Check(value.ptr()) && has(value, "operator_type");
}

// Reads a tuple of UINT, at most the capacity of the array; validation refuses a greater count.
std::uint32_t read_dimensions(const std::string& where, py::handle values,
                              BufferTensorDesc::Dimensions& result) {
  const auto items = py::reinterpret_steal<py::object>(PySequence_Tuple(values.ptr()));
  if (!items) {
    if (!value_is_at_fault()) throw_python_error();
    PyErr_Clear();
    throw_type_error(where, "a sequence of integers", values);
  }
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(items.ptr()));
  for (std::size_t i = 0; i < count && i < result.size(); ++i) {
    result[i] = uint_from(where + "[" + std::to_string(i) + "]",
                          PyTuple_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i)));
  }
  return static_cast<std::uint32_t>(count);
}

BufferTensorDesc read_tensor(const std::string& where, const py::object& value,
                             bool optional = false) {
  if (!has(value, "guaranteed_base_offset_alignment")) {
    throw_type_error(where, optional ? "a BufferTensorDesc or None" : "a BufferTensorDesc", value);
  }
  BufferTensorDesc tensor;
  tensor.data_type =
      static_cast<DataType>(uint_from(where + ".data_type", value.attr("data_type")));
  tensor.flags = static_cast<TensorFlags>(uint_from(where + ".flags", value.attr("flags")));
  tensor.dimension_count = read_dimensions(where + ".sizes", value.attr("sizes"), tensor.sizes);
  const py::object strides = value.attr("strides");
  if (!strides.is_none()) {
    const std::uint32_t count =
        read_dimensions(where + ".strides", strides, tensor.strides.emplace());
    if (count != tensor.dimension_count) {
      throw ValidationError(concat(where, " has ", counted(count, "stride"), " for ",
                                   counted(tensor.dimension_count, "dimension")));
    }
  }
  const py::object total = value.attr("total_tensor_size_in_bytes");
  if (!total.is_none()) {
    tensor.total_tensor_size_in_bytes = uint64_from(where + ".total_tensor_size_in_bytes", total);
  }
  tensor.guaranteed_base_offset_alignment = uint_from(
      where + ".guaranteed_base_offset_alignment", value.attr("guaranteed_base_offset_alignment"));
  return tensor;
}

std::optional<ScaleBias> scale_bias_of(const std::string& where, const py::object& value) {
  if (value.is_none()) return std::nullopt;
  if (!has(value, "scale") || !has(value, "bias")) {
    throw_type_error(where, "a ScaleBias or None", value);
  }
  return ScaleBias{float_from(where + ".scale", value.attr("scale")),
                   float_from(where + ".bias", value.attr("bias"))};
}

// Reads the axes of a tensor; `rank` is its number of dimensions.
std::vector<std::uint32_t> axes_of(const std::string& where, const py::object& value,
                                   std::int64_t rank) {
  std::vector<std::uint32_t> axes;
  for (const py::handle item : value) {
    const std::string element = concat(where, "[", axes.size(), "]");
    int overflow = 0;
    const std::int64_t axis =
        PyLong_Check(item.ptr()) ? PyLong_AsLongLongAndOverflow(item.ptr(), &overflow) : 0;
    if (overflow == 0 && axis < 0 && axis >= -rank) {
      throw ValidationError(
          concat(element, " is ", axis, "; descriptors count axes from 0: use ", axis + rank));
    }
    axes.push_back(uint_from(element, item));
  }
  return axes;
}

// Reads the fields in order, each into the next member of its kind.
class Reader {
 public:
  Reader(const OperatorInfo& op, const py::object& desc) : op_(op), source_(desc) {
    result_.type = op.type;
    for (const Field& field : op) read(field);
  }
  OperatorDesc take() { return std::move(result_); }

 private:
  void read(const Field& field) {
    const py::object value = source_.attr(field.name);
    const std::string where = concat(op_.name, ": ", field.name);
    switch (field.kind) {
      case FieldKind::tensor:
      case FieldKind::parameter:
      case FieldKind::output:
        if (!value.is_none()) {
          const bool optional = field.optional || op_.is_fusable;
          result_.tensors[tensors_] = read_tensor(where, value, optional);
        }
        ++tensors_;
        break;
      case FieldKind::number:
        result_.numbers[numbers_++] = float_from(where, value);
        break;
      case FieldKind::scalar:
        result_.scalars[scalars_++] = scalar_from(where, value, result_.min_max_data_type);
        break;
      case FieldKind::data_type:
        result_.min_max_data_type = static_cast<DataType>(uint_from(where, value));
        break;
      case FieldKind::scale_bias:
        result_.scale_bias = scale_bias_of(where, value);
        break;
      case FieldKind::boolean:
        if (!read_bool(op_.name, field.name, value.ptr(), result_.booleans[booleans_++])) {
          throw_python_error();
        }
        break;
      case FieldKind::axes:
        result_.axes =
            axes_of(where, value, result_.tensors[0] ? result_.tensors[0]->dimension_count : 0);
        break;
      case FieldKind::activation:
        if (value.is_none()) break;
        if (!is_operator_desc(value)) {
          throw_type_error(where, "the descriptor of an activation or None", value);
        }
        // Reads activations only: other operators are refused by their type, which bounds the
        // nesting.
        result_.fused_activation = std::make_shared<const OperatorDesc>(read_fused(value));
        break;
    }
  }

  static OperatorDesc read_fused(const py::object& value) {
    OperatorDesc fused;
    fused.type = static_cast<OperatorType>(uint_from("operator_type", value.attr("operator_type")));
    const OperatorInfo* const op = find_operator(fused.type);
    return op == nullptr || !op->is_fusable ? fused : Reader(*op, value).take();
  }

  const OperatorInfo& op_;
  const py::object& source_;
  OperatorDesc result_;
  std::size_t tensors_ = 0, numbers_ = 0, scalars_ = 0, booleans_ = 0;
};

template <class Error>
PyObject* add_error(py::module_& module, const char* name, const char* text) {
  auto& error = py::register_exception<Error>(module, name, PyExc_ValueError);
  error.attr("__doc__") = text;
  return error.ptr();
}

std::optional<Activation> fusable_activation(PyObject* name) {
  for (std::uint32_t i = 0; PyUnicode_Check(name) && i < kFusableActivationCount; ++i) {
    const auto type = static_cast<Activation>(i);
    if (PyUnicode_CompareWithASCIIString(name, info(type).name) == 0) return type;
  }
  return std::nullopt;
}

std::uint64_t tensor_size(const py::object& tensor) {
  return calc_buffer_tensor_size(read_tensor("calc_buffer_tensor_size: the tensor", tensor));
}

}  // namespace

OperatorDesc read_desc(const std::string& where, const py::object& desc) {
  const FloatEnvironment environment;  // numbers are rounded to FLOAT
  const OperatorInfo* op = nullptr;
  if (is_operator_desc(desc)) {
    const std::uint32_t type = uint_from("operator_type", desc.attr("operator_type"));
    op = find_operator(static_cast<OperatorType>(type));
  }
  if (op == nullptr && PyType_Check(desc.ptr()) && has(desc, "operator_type")) {
    const auto name = desc.attr("__name__").cast<std::string>();
    throw py::type_error(concat(where, " is the class ", name, "; write ", name, "(...)"));
  }
  if (op == nullptr) throw_type_error(where, "the descriptor of an operator", desc);
  return Reader(*op, desc).take();
}

bool read_fused_activation(const char* function, PyObject* value,
                           std::optional<FusedActivation>& result) {
  if (!is_given(value)) return true;
  if (const std::optional<Activation> type = fusable_activation(value)) {
    result = *type;
    return true;
  }
  try {
    const std::string where = concat(function, ": fused_activation");
    auto given = py::reinterpret_borrow<py::object>(value);
    const auto from_python = [&] {  // the descriptor of a class, or an error
      return py::module_::import("dmlops._fused_activation").attr("fused_activation")(where, given);
    };
    if (!is_operator_desc(given)) given = from_python();
    const OperatorDesc desc = read_desc(where, given);
    const OperatorInfo& op = *find_operator(desc.type);
    if (!op.is_fusable) {
      from_python();  // raises a TypeError that lists the activations
      throw_type_error(where, "the descriptor of an activation that can be fused, or None", given);
    }
    if (desc.tensors[0].has_value() || desc.tensors[1].has_value()) {
      throw ValidationError(concat(where, " has tensors; a fused activation must have none"));
    }
    result = FusedActivation{op.activation, {desc.numbers[0], desc.numbers[1]}};
  } catch (...) {
    set_descriptor_error();
    return false;
  }
  return true;
}

void add_descriptors(py::module_& module) {
  validation_error = add_error<ValidationError>(
      module, "ValidationError", "A descriptor that breaks one of DirectML's rules.");
  binding_error = add_error<BindingError>(module, "BindingError",
                                          "A binding that does not fit; nothing was written.");
  module.def("validate", [](const py::object& desc, std::uint32_t level) {
    validate(read_desc("validate: desc", desc),
             Device(static_cast<FeatureLevel>(level)).feature_level());
  });
  module.def("required_feature_level", [](const py::object& desc) {
    return static_cast<std::uint32_t>(
        required_feature_level(read_desc("required_feature_level: desc", desc)));
  });
  module.def("calc_buffer_tensor_size", &tensor_size);
  module.def("directml_names", &directml_names, py::arg("message"));
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
