// The operators as Python functions: vectorcall entries. A call allocates nothing but the result,
// except to read the descriptor of a fused activation, or a list of axes.
#include <utility>
#include <vector>

#include "dmlops/operators.hpp"
#include "errors.hpp"
#include "foreign.hpp"
#include "function_arguments.hpp"
#include "module.hpp"
#include "operators/check.hpp"

namespace dmlops::python {
namespace {

// The signature of each function, set at import.
template <auto kFunction>
Signature signature_of;

void run(const ClipArguments& a) { clip(a.input.view(), a.min, a.max, a.scale_bias, a.out.view()); }

void run(const ClipGradArguments& a) {
  clip_grad(a.input.view(), a.input_gradient.view(), a.min, a.max, a.out.view());
}

void run(const ReluGradArguments& a) {
  relu_grad(a.input.view(), a.input_gradient.view(), a.out.view());
}

void run(const ParameterizedReluArguments& a) {
  parameterized_relu(a.input.view(), a.slope.view(), a.out.view());
}

void run(const LogSoftmaxArguments& a) {
  log_softmax(a.input.view(), a.axes, a.axis_count, a.out.view());
}

void run(const SoftmaxArguments& a) { softmax(a.input.view(), a.axes, a.axis_count, a.out.view()); }

void run(const HardmaxArguments& a) { hardmax(a.input.view(), a.axes, a.axis_count, a.out.view()); }

void run(const BatchNormalizationArguments& a) {
  batch_normalization(
      {a.input.view(), a.mean.view(), a.variance.view(), a.scale.view(), a.bias.view()}, a.epsilon,
      a.fused_activation, a.out.view());
}

std::optional<ConstTensorView> optional_view(const InputArray& array) {
  if (array.object() == nullptr) return std::nullopt;
  return array.view();
}

void run(const MeanVarianceNormalizationArguments& a) {
  mean_variance_normalization(
      a.input.view(), optional_view(a.scale), optional_view(a.bias), a.axes, a.axis_count,
      {a.use_mean, a.use_variance, a.epsilon, a.fused_activation}, a.out.view());
}

void run(const BatchNormalizationTrainingArguments& a) {
  batch_normalization_training(
      {a.input.view(), a.scale.view(), a.bias.view(), optional_view(a.fused_add)}, a.epsilon,
      a.fused_activation, {a.out[0].view(), a.out[1].view(), a.out[2].view()});
}

void run(const BatchNormalizationGradArguments& a) {
  batch_normalization_grad(
      {a.input.view(), a.input_gradient.view(), a.mean.view(), a.variance.view(), a.scale.view()},
      a.epsilon, {a.out[0].view(), a.out[1].view(), a.out[2].view()});
}

void run(const BatchNormalizationTrainingGradArguments& a) {
  batch_normalization_training_grad(
      {a.input.view(), a.input_gradient.view(), a.mean.view(), a.variance.view(), a.scale.view()},
      a.epsilon, {a.out[0].view(), a.out[1].view(), a.out[2].view()});
}

// A function other than an activation.
template <class Arguments>
PyObject* function(PyObject* const* given, Py_ssize_t positional, PyObject* keyword_names) {
  static_assert(Arguments::kCount <= Signature::kMaxParameters);
  const Signature& signature = signature_of<&function<Arguments>>;
  PyObject* values[Arguments::kCount] = {};
  Arguments arguments;
  if (!match(signature, given, positional, keyword_names, values) ||
      !arguments.read(signature.function, values)) {
    return nullptr;
  }
  return finish(arguments.input, arguments.out, [&] { run(arguments); });
}

// An activation: f(input, parameters..., *, out).
template <Activation kType>
PyObject* activation(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
  const ActivationInfo& about = info(kType);
  const Signature& signature = signature_of<&activation<kType>>;
  const AcceptedTypes& accepted = accepted_types(kType);
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
  return finish(input, output,
                [&] { dmlops::activation(kType, input.view(), parameters, output.view()); });
}

// The lookup of dask and labeled arrays runs only after an argument was refused.
template <auto kFunction>
PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t positional,
               PyObject* keyword_names) {
  PyObject* result = nullptr;
  try {
    result = kFunction(arguments, positional, keyword_names);
  } catch (...) {
    return set_error();
  }
  if (result != nullptr) return result;
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

// Both null-terminated.
PyMethodDef operators[AllFunctions::kCount + 1] = {}, activations[kActivationCount + 1] = {};

template <std::size_t... kIndex>
void set_activations(std::index_sequence<kIndex...>) {
  ((activations[kIndex] = activation_entry<static_cast<Activation>(kIndex)>()), ...);
}

template <class... Arguments>
void set_operators(Functions<Arguments...>) {
  PyMethodDef* next = operators;
  ((*next++ = entry<&function<Arguments>>(Arguments::signature())), ...);
}

}  // namespace

void add_functions(pybind11::module_& module) {
  if (operators[0].ml_name == nullptr) {  // already set on a second import
    set_operators(AllFunctions());
    set_activations(std::make_index_sequence<kActivationCount>());
  }
  if (PyModule_AddFunctions(module.ptr(), operators) != 0 ||
      PyModule_AddFunctions(module.ptr(), activations) != 0) {
    throw_python_error();
  }
}

}  // namespace dmlops::python
