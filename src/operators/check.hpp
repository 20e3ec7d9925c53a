// Rules and error messages that the operators share.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "dmlops/operators.hpp"
#include "operators/type_sets.hpp"

namespace dmlops {

std::string number_text(double value);  // the shortest text that reads back as the same number
std::string shape_text(const ConstTensorView& view);  // "(2, 3)", like Python's tuples

// The name of an output in messages: the argument or field in C and C++; in Python `out`, or an
// element of the tuple `out`.
struct OutputName {
  const char* cpp;
  const char* python;
  const char* text() const;
};
constexpr OutputName kOutput = {"output", "out"};
constexpr OutputName kBatchNormalizationTrainingOutputs[] = {
    {"output", "out[0] (output)"},
    {"mean", "out[1] (mean)"},
    {"variance", "out[2] (variance)"},
};
constexpr OutputName kBatchNormalizationGradOutputs[] = {
    {"gradient", "out[0] (gradient)"},
    {"scale_gradient", "out[1] (scale_gradient)"},
    {"bias_gradient", "out[2] (bias_gradient)"},
};
inline constexpr auto& kBatchNormalizationTrainingGradOutputs = kBatchNormalizationGradOutputs;

// Messages have Python's names from now on; its module calls this at import.
void use_python_names();

const AcceptedTypes& accepted_types(Activation type);

[[noreturn]] void refuse_unknown(const char* where, Activation type);
// Throws Error unless `type` is an enumerator, since the value indexes tables. `where` begins the
// message: "activation: ".
inline void require_known(const char* where, Activation type) {
  if (static_cast<std::uint32_t>(type) >= kActivationCount) refuse_unknown(where, type);
}
// Returns the names of the activations that can be fused: "elu, celu".
std::string fusable_names();
// Throws Error unless the activation, if there is one, can be fused.
void require_fusable(const char* op, const std::optional<FusedActivation>& activation);

// Throws Error unless rank and sizes are valid, and the strides keep the tensor within the address
// space of a process, which ensures that offsets do not wrap.
void require_addressable(const char* op, const char* argument, const ConstTensorView& view);

// Throws Error for a null pointer unless the tensor is empty. The view must be addressable.
void require_data(const char* op, const char* argument, const ConstTensorView& view);

// Throws Error unless the input is addressable and has data.
void require_input(const char* op, const ConstTensorView& input);

[[noreturn]] void refuse_type(const char* op, DataType type, const AcceptedTypes& accepted);
// Throws TypeError unless the input's type is accepted.
inline void require_type(const char* op, DataType type, const AcceptedTypes& accepted) {
  if (!accepted.has(type)) refuse_type(op, type, accepted);
}

// Throws Error if a bound of integers has a fraction.
void require_whole(const char* op, const char* argument, const Scalar& bound);

// Throws unless a tensor has the type and the sizes of `like`, named `other`, is addressable and
// has data. `like` has the input's type.
void require_like(const char* op, const char* argument, const ConstTensorView& view,
                  const ConstTensorView& like, const char* other);

// Throws unless an output has the type and the sizes of `like`, named `other`, is addressable, has
// data, and has no overlapping elements. In the second form, `like` is the input.
void require_output(const char* op, const OutputName& argument, const ConstTensorView& output,
                    const ConstTensorView& like, const char* other);
void require_output(const char* op, const ConstTensorView& output, const ConstTensorView& input);

// Throws unless a parameter has the type and the number of dimensions of the input, each of size 1
// or the input's, is addressable and has data. Messages advise to broadcast a vector along the last
// of the axes `vector_axes`, a set of bits, if its size fits; and one value, unless the parameter
// must have the shape of others (`has_common_shape`).
void require_broadcastable(const char* op, const char* argument, const ConstTensorView& parameter,
                           const ConstTensorView& input, unsigned int vector_axes = 0,
                           bool has_common_shape = false);

// Returns the reduced axes as a set of bits; throws Error unless each is in range and named once. A
// tensor without dimensions has axis 0, as in NumPy's reductions.
unsigned int reduced_axes(const char* op, const ConstTensorView& input, const std::int64_t* axes,
                          std::size_t axis_count);

// Throws Error if elements of two outputs, given with their names, overlap.
void require_disjoint(const char* op,
                      std::initializer_list<std::pair<OutputName, ConstTensorView>> outputs);

bool is_empty(const ConstTensorView& view);

}  // namespace dmlops
