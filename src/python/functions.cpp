// The operators as Python functions: vectorcall entries. A call allocates nothing but the result,
// except to read the descriptor of a fused activation, or a list of axes.
#include "functions.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "arguments.hpp"
#include "axes.hpp"
#include "core/attributes.hpp"
#include "core/text.hpp"
#include "descriptors.hpp"
#include "dmlops/operators.hpp"
#include "foreign.hpp"
#include "ndarray.hpp"
#include "numbers.hpp"
#include "operators/check.hpp"
#include "outputs.hpp"
#include "signatures.hpp"

namespace dmlops::python {
namespace {

// The signature of each function, set at import.
template <auto kFunction>
Signature signature_of;

PyObject* clip(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&clip>;
  const char* const function = signature.function;
  PyObject* values[5] = {};
  InputArray input;
  OutputArray output;
  Scalar min, max;
  std::optional<ScaleBias> scale_bias;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0], kNumbers64) ||
      !read_bound(function, "min", values[1], min) ||
      !read_bound(function, "max", values[2], max) ||
      !read_scale_bias(function, values[3], scale_bias) ||
      !output.read_output(function, values[4], input, kNumbers64)) {
    return nullptr;
  }
  return finish(output, [&](const TensorView& out) {
    dmlops::clip(input.view(), min, max, scale_bias, out);
  });
}

PyObject* clip_grad(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&clip_grad>;
  const char* const function = signature.function;
  PyObject* values[5] = {};
  InputArray input, gradient;
  OutputArray output;
  Scalar min, max;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0], kNumbers64) ||
      !gradient.read_input(function, "input_gradient", values[1], kNumbers64, &input) ||
      !read_bound(function, "min", values[2], min) ||
      !read_bound(function, "max", values[3], max) ||
      !output.read_output(function, values[4], input, kNumbers64)) {
    return nullptr;
  }
  return finish(output, [&](const TensorView& out) {
    dmlops::clip_grad(input.view(), gradient.view(), min, max, out);
  });
}

using PairFunction = void (*)(const ConstTensorView&, const ConstTensorView&, const TensorView&);

// A function of two arrays: f(input, other, *, out).
template <PairFunction kOperator>
PyObject* pair(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&pair<kOperator>>;
  const char* const function = signature.function;
  PyObject* values[3] = {};
  InputArray input, other;
  OutputArray output;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0], kSigned32) ||
      !other.read_input(function, signature.names[1], values[1], kSigned32, &input) ||
      !output.read_output(function, values[2], input, kSigned32)) {
    return nullptr;
  }
  return finish(output, [&](const TensorView& out) { kOperator(input.view(), other.view(), out); });
}

template <Activation kType>
const AcceptedTypes& kTypesOf = accepted_types(kType);

// An activation: f(input, parameters..., *, out).
template <Activation kType>
PyObject* activation(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
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
    dmlops::activation(kType, input.view(), parameters, out);
  });
}

PyObject* batch_normalization(PyObject* const* arguments, Py_ssize_t positional,
                              PyObject* keyword_names) {
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
        {inputs[0].view(), inputs[1].view(), inputs[2].view(), inputs[3].view(), inputs[4].view()},
        epsilon, activation, out);
  });
}

using ReductionFunction = void (*)(const ConstTensorView&, const std::int64_t*, std::size_t,
                                   const TensorView&);

// A reduction: f(input, axes, *, out).
template <ReductionFunction kOperator>
PyObject* reduction(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
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
  return finish(output,
                [&](const TensorView& out) { kOperator(input.view(), axes, axis_count, out); });
}

PyObject* mean_variance_normalization(PyObject* const* arguments, Py_ssize_t positional,
                                      PyObject* keyword_names) {
  const Signature& signature = signature_of<&mean_variance_normalization>;
  const char* const function = signature.function;
  PyObject* values[9] = {};
  InputArray input, scale, bias;
  OutputArray output;
  std::int64_t axes[kMaxRank];
  std::size_t axis_count = 0;
  MeanVarianceNormalizationOptions options;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0]) ||
      (is_given(values[1]) && !scale.read_input(function, "scale", values[1], kFloats, &input)) ||
      (is_given(values[2]) && !bias.read_input(function, "bias", values[2], kFloats, &input)) ||
      !read_axes(function, values[3], input.view(), axes, axis_count) ||
      !read_bool(function, "use_mean", values[4], options.use_mean) ||
      !read_bool(function, "use_variance", values[5], options.use_variance) ||
      !read_float(function, "epsilon", values[6], options.epsilon) ||
      !read_fused_activation(function, values[7], options.fused_activation) ||
      !output.read_output(function, values[8], input)) {
    return nullptr;
  }
  const auto view = [](const InputArray& array) -> std::optional<ConstTensorView> {
    if (array.object() == nullptr) return std::nullopt;
    return array.view();
  };
  return finish(output, [&](const TensorView& out) {
    dmlops::mean_variance_normalization(input.view(), view(scale), view(bias), axes, axis_count,
                                        options, out);
  });
}

PyObject* batch_normalization_training(PyObject* const* arguments, Py_ssize_t positional,
                                       PyObject* keyword_names) {
  const Signature& signature = signature_of<&batch_normalization_training>;
  const char* const function = signature.function;
  PyObject* values[7] = {};
  InputArray input, scale, bias, added;
  OutputArray outputs[kOutputs];
  float epsilon = 1e-5f;
  std::optional<FusedActivation> activation;
  if (!match(signature, arguments, positional, keyword_names, values) ||
      !input.read_input(function, "input", values[0]) ||
      !scale.read_input(function, "scale", values[1], kFloats, &input) ||
      !bias.read_input(function, "bias", values[2], kFloats, &input) ||
      (is_given(values[3]) &&
       !added.read_input(function, "fused_add", values[3], kFloats, &input)) ||
      !read_float(function, "epsilon", values[4], epsilon) ||
      !read_fused_activation(function, values[5], activation) ||
      !read_outputs(function, values[6], {&input, &scale, &scale}, outputs)) {
    return nullptr;
  }
  BatchNormalizationTrainingInputs inputs = {input.view(), scale.view(), bias.view(), {}};
  if (added.object() != nullptr) inputs.fused_add = added.view();
  return finish(input, outputs, [&] {
    dmlops::batch_normalization_training(inputs, epsilon, activation,
                                         {outputs[0].view(), outputs[1].view(), outputs[2].view()});
  });
}

using Gradient = void (*)(const BatchNormalizationGradientInputs& inputs, float epsilon,
                          const BatchNormalizationGradients& outputs);

// batch_normalization_grad or batch_normalization_training_grad
template <Gradient kOperator>
PyObject* gradient(PyObject* const* arguments, Py_ssize_t positional, PyObject* keyword_names) {
  const Signature& signature = signature_of<&gradient<kOperator>>;
  const char* const function = signature.function;
  PyObject* values[7] = {};
  InputArray inputs[5];
  OutputArray outputs[kOutputs];
  float epsilon = 1e-5f;
  if (!match(signature, arguments, positional, keyword_names, values)) return nullptr;
  for (int k = 0; k < 5; ++k) {
    const InputArray* const like = k == 0 ? nullptr : inputs;
    if (!inputs[k].read_input(function, signature.names[k], values[k], kFloats, like))
      return nullptr;
  }
  if (!read_float(function, "epsilon", values[5], epsilon) ||
      !read_outputs(function, values[6], {&inputs[0], &inputs[2], &inputs[2]}, outputs)) {
    return nullptr;
  }
  return finish(inputs[0], outputs, [&] {
    kOperator(
        {inputs[0].view(), inputs[1].view(), inputs[2].view(), inputs[3].view(), inputs[4].view()},
        epsilon, {outputs[0].view(), outputs[1].view(), outputs[2].view()});
  });
}

// The lookup of dask and labeled arrays runs only after an argument was refused.
template <auto kFunction>
PyObject* call(PyObject*, PyObject* const* arguments, Py_ssize_t positional,
               PyObject* keyword_names) {
  PyObject* const result = kFunction(arguments, positional, keyword_names);
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
PyMethodDef operators[13] = {}, activations[kActivationCount + 1] = {};

template <std::size_t... kIndex>
void set_activations(std::index_sequence<kIndex...>) {
  ((activations[kIndex] = activation_entry<static_cast<Activation>(kIndex)>()), ...);
}

void set_operators() {
  const Signatures of;
  const PyMethodDef entries[] = {
      entry<&clip>(of.clip),
      entry<&clip_grad>(of.clip_grad),
      entry<&pair<&dmlops::relu_grad>>(of.relu_grad),
      entry<&pair<&dmlops::parameterized_relu>>(of.parameterized_relu),
      entry<&reduction<&dmlops::log_softmax>>(of.log_softmax),
      entry<&reduction<&dmlops::softmax>>(of.softmax),
      entry<&reduction<&dmlops::hardmax>>(of.hardmax),
      entry<&batch_normalization>(of.batch_normalization),
      entry<&mean_variance_normalization>(of.mean_variance_normalization),
      entry<&batch_normalization_training>(of.batch_normalization_training),
      entry<&gradient<&dmlops::batch_normalization_grad>>(of.batch_normalization_grad),
      entry<&gradient<&dmlops::batch_normalization_training_grad>>(
          of.batch_normalization_training_grad),
  };
  static_assert(std::size(entries) + 1 == std::size(operators));
  std::copy(std::begin(entries), std::end(entries), operators);
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
