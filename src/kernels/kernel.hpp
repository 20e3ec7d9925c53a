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

// How an operand reaches a dense block, or a block of results its operand.
enum class Layout : std::uint8_t {
  in_place,    // rows are dense already
  broadcast,   // one value for each row
  strided,     // any step, of either sign
  transposed,  // dense across the rows
  gathered,    // at offsets from a table
};

// A loop of a nest.
struct Loop {
  std::int64_t size;
  std::int64_t strides[kMaxOperands];  // in bytes
};

// A loop nest as rows of elements, and the loops around them. Operand 0 is the output.
struct Rows {
  int operands = 2;
  int outer_rank = 0;  // loops around the rows, the innermost first
  const Loop* outer = nullptr;
  std::int64_t length = 0;  // elements of a row
  std::int64_t count = 0;   // rows
  char* data[kMaxOperands];
  std::int64_t step[kMaxOperands];   // bytes from an element to the next one of its row
  std::int64_t pitch[kMaxOperands];  // bytes from a row to the next one
  Layout layout[kMaxOperands];
  // Where not null, byte offsets of a row's units, instead of the step. A unit is one element, or
  // several that are contiguous.
  const std::int64_t* offsets[kMaxOperands];
  std::int64_t unit[kMaxOperands];  // bytes; set with `offsets`
  // Where not null, byte offsets of the output's rows, instead of its pitch.
  const std::int64_t* row_offsets = nullptr;
  bool streaming = false;  // write the output by non-temporal stores
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

// The loop nest of an input and an output.
struct InputOutputNest {
  int rank = 0;
  std::int64_t sizes[kMaxRank] = {};
  std::int64_t input_strides[kMaxRank] = {};  // in bytes
  std::int64_t output_strides[kMaxRank] = {};
};

// The groups that log_softmax reduces, and the share of them that a call of the kernel computes.
struct Groups {
  const char* input = nullptr;
  char* output = nullptr;
  // A group's elements are counted in row-major order over the reduced dimensions; that order fixes
  // the lanes of the sum, whatever the strides are. The outermost dimension comes first.
  InputOutputNest elements;
  InputOutputNest kept;  // the dimensions that count groups, the innermost first
  std::int64_t first = 0, end = 0;
  bool streaming = false;  // write the output by non-temporal stores
};

using GroupKernel = void (*)(const Groups& groups);

constexpr int kSumLanes = 16;             // of the sum over a group
constexpr std::int64_t kSumBlock = 1024;  // elements after which the lanes' sums are added up

// A run of the elements of each group, dense: `length` of them, then those of the next group. It
// begins at a whole number of the sum's blocks, and `max` is that of the whole group.
struct GroupChunks {
  std::int64_t count = 0;  // groups
  std::int64_t length = 0;
  const void* input = nullptr;
  const float* max = nullptr;
};

// The lanes of each block, [count][blocks][kSumLanes][2], of the sum without the maxima and of the
// plain one, and how many elements equal the maximum.
using GroupSumsKernel = void (*)(const GroupChunks& chunks, double* lanes, double* maxima);
// The results, from the sums over the whole groups, [count][2].
using GroupFinishKernel = void (*)(const GroupChunks& chunks, const double* sums,
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
