// The operators as Python functions: vectorcall entries. Apart from a fused
// activation, which is read through its attributes, a call allocates nothing but the result.
#include "functions.hpp"

#include <utility>

#include "arguments.hpp"
#include "core/attributes.hpp"
#include "core/float_environment.hpp"
#include "core/text.hpp"
#include "descriptors.hpp"
#include "foreign.hpp"
#include "gil.hpp"
#include "ndarray.hpp"
#include "numbers.hpp"
#include "operators/check.hpp"
#include "operators/in_environment.hpp"

namespace dmlops::python {
namespace {

std::int64_t element_count(const TensorView& view) {
  std::int64_t elements = 1;
  for (int d = 0; d < view.rank; ++d) elements *= view.sizes[static_cast<std::size_t>(d)];
  return elements;
}

// Runs `operate` on the output, and returns the output.
template <class Operate>
PyObject* finish(OutputArray& output, const Operate& operate) {
  try {
    const GilReleased released(element_count(output.view()));
    operate(output.view());
  } catch (...) {
    return set_error();  // holds the GIL again
  }
  return output.take_result();
}

// The vectorcall of the function below, set at import.
template <auto kFunction>
Signature signature_of;

PyObject* clip(const FloatEnvironment& environment, PyObject* const* arguments,
               Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&clip>;
  const char* const function = signature.function;
  PyObject* values[5] = {};
  InputArray input;
  OutputArray output;
  Scalar min, max;
  std::optional<ScaleBias> scale_bias;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0], kClipTypes) ||
      !read_bound(function, "min", values[1], min) ||
      !read_bound(function, "max", values[2], max) ||
      !read_scale_bias(function, values[3], scale_bias) ||
      !output.read_output(function, values[4], input, kClipTypes)) {
    return nullptr;
  }
  return finish(output, [&](const TensorView& out) {
    dmlops::clip(environment, input.view(), min, max, scale_bias, out);
  });
}

template <Activation kType>
const AcceptedTypes kTypesOf = activation_types(kType);

// An activation: f(input, parameters..., *, out).
template <Activation kType>
PyObject* activation(const FloatEnvironment& environment, PyObject* const* arguments,
                     Py_ssize_t positional, PyObject* keyword_names) {
  const ActivationInfo& about = info(kType);
  const Signature& signature = signature_of<&activation<kType>>;
  const AcceptedTypes& accepted = kTypesOf<kType>;
  const char* const function = signature.function;
  PyObject* values[4] = {};
  InputArray input;
  OutputArray output;
  ActivationParameters parameters = about.defaults;
  float* const fields[] = {&parameters.alpha, &parameters.beta};
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0], accepted)) {
    return nullptr;
  }
  for (int i = 0; i < about.parameter_count; ++i) {
    if (!read_float(function, signature.names[1 + i], values[1 + i], *fields[i])) return nullptr;
  }
  if (!output.read_output(function, values[1 + about.parameter_count], input, accepted))
    return nullptr;
  return finish(output, [&](const TensorView& out) {
    dmlops::activation(environment, kType, input.view(), parameters, out);
  });
}

PyObject* batch_normalization(const FloatEnvironment& environment, PyObject* const* arguments,
                              Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&batch_normalization>;
  const char* const function = signature.function;
  PyObject* values[8] = {};
  InputArray inputs[5];
  OutputArray output;
  float epsilon = 1e-5f;
  std::optional<FusedActivation> activation;
  if (!match(signature, arguments, positional, keyword_names, values)) return nullptr;
  for (int k = 0; k < 5; ++k) {
    const InputArray* const like = k == 0 ? nullptr : inputs;
    if (!inputs[k].read_input(function, signature.names[k], values[k], kFloats, like))
      return nullptr;
  }
  if (!read_float(function, "epsilon", values[5], epsilon)) return nullptr;
  if (!read_fused_activation(function, values[6], activation)) return nullptr;
  if (!output.read_output(function, values[7], inputs[0])) return nullptr;
  return finish(output, [&](const TensorView& out) {
    dmlops::batch_normalization(
        environment,
        {inputs[0].view(), inputs[1].view(), inputs[2].view(), inputs[3].view(), inputs[4].view()},
        epsilon, activation, out);
  });
}

// Sets the error for an axis beyond 64 bits.
DMLOPS_COLD bool refuse_axis(const char* function, PyObject* axis, const ConstTensorView& input) {
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s: axis %s is out of range for input with %s, shape %s",
               function, text_of(axis).c_str(), counted(input.rank, "dimension").c_str(),
               shape_text(input).c_str());
  return false;
}

// Reads an int or a sequence of ints.
bool read_axes(const char* function, PyObject* value, const ConstTensorView& input,
               std::int64_t (&axes)[kMaxRank], std::size_t& count) {
  const auto read_axis = [&](PyObject* item, std::int64_t& axis) {
    const Py_ssize_t read = PyNumber_AsSsize_t(item, PyExc_OverflowError);
    axis = static_cast<std::int64_t>(read);
    if (read != -1 || PyErr_Occurred() == nullptr) return true;
    return PyErr_ExceptionMatches(PyExc_OverflowError) != 0 && refuse_axis(function, item, input);
  };
  const auto wrong_type = [&](PyObject* item) {
    PyErr_Format(PyExc_TypeError, "%s: axes must be an int or a sequence of ints, not %s", function,
                 Py_TYPE(item)->tp_name);
    return false;
  };
  count = 1;
  if (value == nullptr) {
    axes[0] = -1;
    return true;
  }
  if (PyIndex_Check(value) && !PySequence_Check(value)) return read_axis(value, axes[0]);
  // Copies the sequence, since reading an item can run arbitrary code that changes the caller's
  // list.
  PyObject* const items = PyUnicode_Check(value) ? nullptr : PySequence_Tuple(value);
  if (items == nullptr) {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_TypeError) == 0) return false;
    PyErr_Clear();
    return wrong_type(value);
  }
  const Py_ssize_t length = PyTuple_GET_SIZE(items);
  bool done = length <= kMaxRank;
  if (!done) {
    PyErr_Format(PyExc_ValueError, "%s: axes names %zd axes; a tensor has at most %d", function,
                 length, kMaxRank);
  }
  for (Py_ssize_t i = 0; done && i < length; ++i) {
    PyObject* const item = PyTuple_GET_ITEM(items, i);
    done = PyIndex_Check(item) ? read_axis(item, axes[i]) : wrong_type(item);
  }
  count = static_cast<std::size_t>(length);
  Py_DECREF(items);
  return done;
}

using ReductionFunction = void (*)(const FloatEnvironment&, const ConstTensorView&,
                                   const std::int64_t*, std::size_t, const TensorView&);

// Each of the operators f(input, axes, *, out).
template <ReductionFunction kOperator>
PyObject* reduction(const FloatEnvironment& environment, PyObject* const* arguments,
                    Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&reduction<kOperator>>;
  const char* const function = signature.function;
  PyObject* values[3] = {};
  InputArray input;
  OutputArray output;
  std::int64_t axes[kMaxRank];
  std::size_t axis_count = 0;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0]) ||
      !read_axes(function, values[1], input.view(), axes, axis_count) ||
      !output.read_output(function, values[2], input)) {
    return nullptr;
  }
  return finish(output, [&](const TensorView& out) {
    kOperator(environment, input.view(), axes, axis_count, out);
  });
}

// Arguments are rounded and results computed in the default floating-point state, independent of
// the caller's. The lookup of dask and labeled arrays runs only after an argument was refused.
template <auto kFunction>
PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t positional,
               PyObject* keyword_names) {
  {
    const FloatEnvironment environment;
    PyObject* const result = kFunction(environment, arguments, positional, keyword_names);
    if (result != nullptr) return result;
  }
  return call_foreign(signature_of<kFunction>.function, arguments, positional, keyword_names);
}

template <auto kFunction>
PyMethodDef entry(const Signature& signature) {
  signature_of<kFunction> = signature;
  const auto function = &call<kFunction>;
  return {signature.function, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
          METH_FASTCALL | METH_KEYWORDS, nullptr};
}

template <Activation kType>
PyMethodDef activation_entry() {
  const ActivationInfo& about = info(kType);
  std::vector<const char*> names = {"input"};
  names.insert(names.end(), about.parameter_names, about.parameter_names + about.parameter_count);
  names.push_back("out");
  return entry<&activation<kType>>({about.name, 1 + about.parameter_count, 1, names});
}

template <ReductionFunction kOperator>
PyMethodDef reduction_entry(const char* name) {
  return entry<&reduction<kOperator>>({name, 2, 1, {"input", "axes", "out"}});
}

PyMethodDef operators[6] = {}, activations[kActivationCount + 1] = {};  // null-terminated

template <std::size_t... kIndex>
void set_activations(std::index_sequence<kIndex...>) {
  ((activations[kIndex] = activation_entry<static_cast<Activation>(kIndex)>()), ...);
}

void set_operators() {
  operators[0] = entry<&clip>({"clip", 3, 1, {"input", "min", "max", "scale_bias", "out"}});
  operators[1] = entry<&batch_normalization>(
      {"batch_normalization",
       6,
       5,
       {"input", "mean", "variance", "scale", "bias", "epsilon", "fused_activation", "out"}});
  operators[2] = reduction_entry<&dmlops::log_softmax>("log_softmax");
  operators[3] = reduction_entry<&dmlops::softmax>("softmax");
  operators[4] = reduction_entry<&dmlops::hardmax>("hardmax");
}

}  // namespace

bool add_functions(PyObject* module) {
  if (operators[0].ml_name == nullptr) {  // already set on a second import
    set_operators();
    set_activations(std::make_index_sequence<kActivationCount>());
  }
  return PyModule_AddFunctions(module, operators) == 0 &&
         PyModule_AddFunctions(module, activations) == 0;
}

}  // namespace dmlops::python
