// What an operator hands to a kernel, and the table of kernels that each instruction set fills.
//
// Plain structs only: this header is compiled with every instruction set's flags, and nothing in it
// may emit code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmlops/activation.hpp"
#include "dmlops/tensor.hpp"

namespace dmlops {

constexpr int kMaxOperands = 6;  // batch normalization: the output and five inputs

// Rows of elements, the two innermost dimensions of a traversal. Operand 0 is the output.
struct Rows {
  std::int64_t length = 0;  // elements in a row
  std::int64_t count = 0;   // rows
  char* data[kMaxOperands];
  std::int64_t step[kMaxOperands];   // bytes from an element to the next in its row
  std::int64_t pitch[kMaxOperands];  // bytes from a row to the next
  // Where not null, operand 1 has no step: its elements are at these bytes from their row's begin.
  const std::int64_t* offsets = nullptr;
  // Where not null, operand 0 has a pitch of 0: its rows begin at these bytes from its data.
  const std::int64_t* row_offsets = nullptr;
  // Short dense rows of two operands come in layers: all of these again, at so many bytes from
  // them.
  std::int64_t layers = 1;
  std::int64_t layer_pitch[2];
  // Write the output past the caches; only where its elements are aligned.
  bool non_temporal = false;
};

using RowKernel = void (*)(const Rows& rows, const void* parameters);

// Formulas of dozens of instructions, beside which a call counts little.
constexpr bool is_long(Activation type) {
  switch (type) {
    case Activation::elu:
    case Activation::celu:
    case Activation::parametric_softplus:
    case Activation::scaled_elu:
    case Activation::scaled_tanh:
    case Activation::sigmoid:
    case Activation::softplus:
    case Activation::tanh:
    case Activation::gelu:
      return true;
    default:
      return false;
  }
}

// Bounds in the tensor's own type, as bits; `scale` and `bias` are read by the scaled kernels
// alone.
struct ClipParameters {
  std::uint64_t min_bits = 0;
  std::uint64_t max_bits = 0;
  float scale = 1;
  float bias = 0;
};

struct BatchNormalizationParameters {
  float epsilon = 0;
  ActivationParameters activation = {};
};

// Independent groups that one call of the log_softmax kernel reduces. A group's elements are
// counted in row-major order over its reduced dimensions; that order fixes the lanes of the sum,
// whatever the strides are.
struct Groups {
  std::int64_t count = 0;                        // groups
  std::int64_t input_step = 0, output_step = 0;  // bytes from a group to the next
  const char* input = nullptr;
  char* output = nullptr;
  int rank = 0;  // reduced dimensions, the slowest first
  std::int64_t sizes[kMaxRank] = {};
  std::int64_t input_strides[kMaxRank] = {};
  std::int64_t output_strides[kMaxRank] = {};
  bool non_temporal = false;  // write the output past the caches
};

using GroupKernel = void (*)(const Groups& groups);

constexpr int kSumLanes = 16;             // of the sum over a group
constexpr std::int64_t kSumBlock = 1024;  // elements after which the lanes' sums are added up

// A run of the elements of each group, dense: `length` of them, then those of the next group. It
// begins at a whole number of the sum's blocks, and `max` is that of the whole group.
struct GroupParts {
  std::int64_t count = 0;  // groups
  std::int64_t length = 0;
  const void* input = nullptr;
  const float* max = nullptr;
};

// The lanes of each block, [count][blocks][kSumLanes][2], of the sum without the maxima and of the
// plain one, and how many elements equal the maximum.
using GroupSumsKernel = void (*)(const GroupParts& parts, double* lanes, double* maxima);
// The results, from the sums over the whole groups, [count][2].
using GroupFinishKernel = void (*)(const GroupParts& parts, const double* sums,
                                   const double* maxima, void* output);

constexpr std::size_t kFloatTypes = 2;  // float32, float16: the order of the tables' second index

struct KernelTable {
  const char* name;                       // given by who selects it
  RowKernel copy[4];                      // by the logarithm of the element size
  RowKernel clip[kDataTypeCount];         // by DataType; null where clip does not take the type
  RowKernel clip_scaled[kDataTypeCount];  // x * scale + bias first
  RowKernel activation[kActivationCount][kFloatTypes];
  RowKernel shrink_integer[kDataTypeCount];
  RowKernel batch_normalization[kActivationCount][kFloatTypes];  // identity: no activation
  GroupKernel log_softmax[kFloatTypes];
  GroupSumsKernel log_softmax_sums[kFloatTypes];
  GroupFinishKernel log_softmax_finish[kFloatTypes];
};

constexpr std::size_t float_index(DataType type) { return type == DataType::float16 ? 1 : 0; }

}  // namespace dmlops
