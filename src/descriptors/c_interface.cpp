// The C interface: converts arguments, and exceptions to status codes.
#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "core/text.hpp"
#include "descriptors/compile.hpp"
#include "descriptors/names.hpp"
#include "dmlops/directml.h"
#include "dmlops/dmlops.h"
#include "dmlops/runtime.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): declared by the C interface
struct dmlops_compiled_operator {
  dmlops::CompiledOperator compiled;
};

namespace dmlops {
namespace {

// A fixed buffer, so that reporting a failed allocation does not allocate.
thread_local char last_error[1024] = "";

dmlops_status fail(dmlops_status status, const char* message) {
  std::snprintf(last_error, sizeof last_error, "%s", message);
  return status;
}

// Runs the body of a function, and converts exceptions to status codes.
template <class Body>
dmlops_status guarded(const Body& body) noexcept {
  try {
    body();
    return DMLOPS_SUCCESS;
  } catch (const TypeError& error) {
    return fail(DMLOPS_TYPE_ERROR, error.what());
  } catch (const ValidationError& error) {
    return fail(DMLOPS_VALIDATION_ERROR, error.what());
  } catch (const BindingError& error) {
    return fail(DMLOPS_BINDING_ERROR, error.what());
  } catch (const Error& error) {
    return fail(DMLOPS_INVALID_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return fail(DMLOPS_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return fail(DMLOPS_UNKNOWN_ERROR, error.what());
  } catch (...) {
    return fail(DMLOPS_UNKNOWN_ERROR, "unknown error");
  }
}

template <class T>
T& required(const char* function, const char* argument, T* pointer) {
  if (pointer != nullptr) return *pointer;
  throw Error(concat(function, ": ", argument, " is null"));
}

TensorView to_view(const char* function, const char* argument, const dmlops_view* pointer) {
  const dmlops_view& from = required(function, argument, pointer);
  TensorView view(from.data, static_cast<DataType>(from.type), from.rank, {}, {});
  std::copy(std::begin(from.sizes), std::end(from.sizes), view.sizes.begin());
  std::copy(std::begin(from.strides), std::end(from.strides), view.strides.begin());
  return view;
}

Scalar to_scalar(const char* argument, const dmlops_scalar* from) {
  if (from == nullptr) return Scalar();
  switch (from->type) {
    case DML_TENSOR_DATA_TYPE_FLOAT64:
      return Scalar(from->value.float64);
    case DML_TENSOR_DATA_TYPE_INT64:
      return Scalar(from->value.int64);
    case DML_TENSOR_DATA_TYPE_UINT64:
      return Scalar(from->value.uint64);
    default:
      throw TypeError(concat("dmlops_clip: ", argument, " has data type ",
                             upper_name(static_cast<DataType>(from->type)),
                             "; it must be FLOAT64, INT64 or UINT64"));
  }
}

Activation to_activation(const char* function, DML_OPERATOR_TYPE type) {
  const OperatorInfo* const op = find_operator(static_cast<OperatorType>(type));
  if (op != nullptr && op->family == Family::activation) return op->activation;
  const std::string given =
      op == nullptr ? std::to_string(static_cast<std::uint32_t>(type)) : directml_names(op->name);
  throw Error(concat(function, ": operator type ", given,
                     " is not an activation of one input and up to two numbers"));
}

FusedActivation to_activation(const char* function, const dmlops_activation& from) {
  return {to_activation(function, from.type), {from.parameters[0], from.parameters[1]}};
}

template <class Result = ConstBinding>
Result to_binding(const dmlops_binding& from) {
  return {from.buffer, from.offset, from.size_in_bytes, from.is_array != 0};
}

}  // namespace
}  // namespace dmlops

using namespace dmlops;

const char* dmlops_last_error(void) { return last_error; }

int32_t dmlops_abi_version(void) { return abi_version(); }

dmlops_status dmlops_get_num_threads(int32_t* count) {
  return guarded([&] { required("dmlops_get_num_threads", "count", count) = get_num_threads(); });
}

dmlops_status dmlops_set_num_threads(int32_t count) {
  return guarded([&] { set_num_threads(count); });
}

dmlops_status dmlops_packed_view(const void* data, DML_TENSOR_DATA_TYPE type, int32_t rank,
                                 const int64_t* sizes, dmlops_view* view) {
  constexpr const char* function = "dmlops_packed_view";
  return guarded([&] {
    dmlops_view& result = required(function, "view", view);
    if (rank < 0 || rank > kMaxRank) {
      throw Error(concat(function, ": rank is ", rank, "; it must be 0 to ", kMaxRank));
    }
    if (rank > 0) required(function, "sizes", sizes);
    const std::vector<int64_t> list(sizes, sizes + rank);
    const ConstTensorView packed(data, static_cast<DataType>(type), list);
    result.data = const_cast<void*>(data);
    result.type = type;
    result.rank = rank;
    std::copy(packed.sizes.begin(), packed.sizes.end(), result.sizes);
    std::copy(packed.strides.begin(), packed.strides.end(), result.strides);
  });
}

dmlops_status dmlops_clip(const dmlops_view* input, const dmlops_scalar* min,
                          const dmlops_scalar* max, const DML_SCALE_BIAS* scale_bias,
                          const dmlops_view* output) {
  constexpr const char* function = "dmlops_clip";
  return guarded([&] {
    std::optional<ScaleBias> scaling;
    if (scale_bias != nullptr) scaling = ScaleBias{scale_bias->Scale, scale_bias->Bias};
    clip(to_view(function, "input", input), to_scalar("min", min), to_scalar("max", max), scaling,
         to_view(function, "output", output));
  });
}

dmlops_status dmlops_default_activation(DML_OPERATOR_TYPE type, dmlops_activation* activation) {
  constexpr const char* function = "dmlops_default_activation";
  return guarded([&] {
    const ActivationParameters defaults = info(to_activation(function, type)).defaults;
    required(function, "activation", activation) = {type, {defaults.alpha, defaults.beta}};
  });
}

dmlops_status dmlops_activate(const dmlops_activation* activation, const dmlops_view* input,
                              const dmlops_view* output) {
  constexpr const char* function = "dmlops_activate";
  return guarded([&] {
    const FusedActivation named =
        to_activation(function, required(function, "activation", activation));
    dmlops::activation(named.type, to_view(function, "input", input), named.parameters,
                       to_view(function, "output", output));
  });
}

dmlops_status dmlops_batch_normalization(const dmlops_view* input, const dmlops_view* mean,
                                         const dmlops_view* variance, const dmlops_view* scale,
                                         const dmlops_view* bias, float epsilon,
                                         const dmlops_activation* fused_activation,
                                         const dmlops_view* output) {
  constexpr const char* function = "dmlops_batch_normalization";
  return guarded([&] {
    std::optional<FusedActivation> fused;
    if (fused_activation != nullptr) fused = to_activation(function, *fused_activation);
    batch_normalization({to_view(function, "input", input), to_view(function, "mean", mean),
                         to_view(function, "variance", variance), to_view(function, "scale", scale),
                         to_view(function, "bias", bias)},
                        epsilon, fused, to_view(function, "output", output));
  });
}

dmlops_status dmlops_log_softmax(const dmlops_view* input, const int64_t* axes, size_t axis_count,
                                 const dmlops_view* output) {
  constexpr const char* function = "dmlops_log_softmax";
  return guarded([&] {
    log_softmax(to_view(function, "input", input), axes, axis_count,
                to_view(function, "output", output));
  });
}

dmlops_status dmlops_required_feature_level(const DML_OPERATOR_DESC* desc,
                                            uint32_t* feature_level) {
  constexpr const char* function = "dmlops_required_feature_level";
  return guarded([&] {
    required(function, "feature_level", feature_level) =
        static_cast<uint32_t>(required_feature_level(required(function, "desc", desc)));
  });
}

dmlops_status dmlops_validate(const DML_OPERATOR_DESC* desc, uint32_t feature_level) {
  return guarded([&] {
    const Device device(static_cast<FeatureLevel>(feature_level));  // throws if it is unknown
    validate(required("dmlops_validate", "desc", desc), device.feature_level());
  });
}

dmlops_status dmlops_calc_buffer_tensor_size(const DML_BUFFER_TENSOR_DESC* desc,
                                             uint64_t* size_in_bytes) {
  constexpr const char* function = "dmlops_calc_buffer_tensor_size";
  return guarded([&] {
    required(function, "size_in_bytes", size_in_bytes) =
        calc_buffer_tensor_size(required(function, "desc", desc));
  });
}

dmlops_status dmlops_compile(const DML_OPERATOR_DESC* desc, uint32_t feature_level,
                             const dmlops_binding* initial, size_t initial_count,
                             dmlops_compiled_operator** compiled) {
  constexpr const char* function = "dmlops_compile";
  return guarded([&] {
    dmlops_compiled_operator*& result = required(function, "compiled", compiled);
    result = nullptr;
    const OperatorDesc read = to_operator_desc(required(function, "desc", desc));
    with_names(read.directml_names,
               [&] { require_initial_count(known_operator(read.type), initial_count); });
    if (initial_count > 0) required(function, "initial", initial);
    std::vector<ConstBinding> bindings(initial_count);
    std::transform(initial, initial + initial_count, bindings.begin(), to_binding<>);
    result = new dmlops_compiled_operator{
        Device(static_cast<FeatureLevel>(feature_level)).compile(read, bindings)};
  });
}

dmlops_status dmlops_dispatch(const dmlops_compiled_operator* compiled,
                              const dmlops_binding* inputs, size_t input_count,
                              const dmlops_binding* outputs, size_t output_count) {
  constexpr const char* function = "dmlops_dispatch";
  return guarded([&] {
    const CompiledOperator& op = required(function, "compiled", compiled).compiled;
    std::array<ConstBinding, OperatorDesc::kMaxTensors> in;
    std::array<Binding, OperatorDesc::kMaxTensors> out;
    if (input_count > 0) required(function, "inputs", inputs);
    if (output_count > 0) required(function, "outputs", outputs);
    // dispatch() refuses invalid counts.
    std::transform(inputs, inputs + std::min(input_count, in.size()), in.begin(), to_binding<>);
    std::transform(outputs, outputs + std::min(output_count, out.size()), out.begin(),
                   to_binding<Binding>);
    op.dispatch(in.data(), input_count, out.data(), output_count);
  });
}

void dmlops_release(dmlops_compiled_operator* compiled) { delete compiled; }
