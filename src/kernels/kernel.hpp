// The interface between operators and kernels: layouts, parameters, and the table of kernels of an
// instruction set.
//
// Plain structs, constants and inlined functions only: this header is compiled with every
// instruction set's flags, and nothing in it may emit code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dmlops/activation.hpp"
#include "dmlops/tensor.hpp"
#include "kernels/activation_list.hpp"

namespace dmlops {

constexpr int kLineBytes = 64;                  // of the cache
constexpr std::int64_t kBlockBytes = 4 * 1024;  // a block, its source and its target share L1
// Shorter rows of a formula of two inputs, in bytes, are extended rather than computed by vectors
// that extend into the next row.
constexpr std::int64_t kShortestAcross = 96;
constexpr std::int64_t kTable = 1024;         // elements of rows that have offset tables, at most
constexpr std::int64_t kTileElements = 4096;  // of a tile of a reduction's groups
// Elements up to this distance apart, in bytes, share cache lines.
constexpr std::int64_t kNearBytes = kLineBytes / 4;

// True if bit `i` is set, of axes or operands given as bits.
template <class Index>
[[gnu::always_inline]] constexpr bool has_bit(unsigned int bits, Index i) {
  return (bits >> i & 1u) != 0;
}

// Returns the quotient rounded up, of a number that is not negative by a positive one.
[[gnu::always_inline]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

constexpr int kMaxOperands = 6;  // batch normalization: the output and five inputs

// The access pattern of an operand, by which it is packed into dense blocks or unpacked from them.
enum class Layout : std::uint8_t {
  in_place,    // dense rows; nothing is packed
  broadcast,   // one value for each row
  strided,     // any step, of either sign
  transposed,  // contiguous, or a few elements apart, across the rows
  gathered,    // gathered through an offset table
};

// A loop of a nest.
struct Loop {
  std::int64_t size;
  std::int64_t strides[kMaxOperands];  // in bytes
};

// A loop nest as rows of elements and outer loops. Operand 0 is the output.
struct Rows {
  int operands = 2;
  int outer_rank = 0;  // outer loops, the innermost first
  const Loop* outer = nullptr;
  std::int64_t outer_index = 0;  // the current iteration of the innermost one
  std::int64_t length = 0;       // elements of a row
  std::int64_t count = 0;        // rows
  char* data[kMaxOperands];
  std::int64_t step[kMaxOperands];   // bytes between elements of a row, or of a run
  std::int64_t pitch[kMaxOperands];  // bytes between rows
  Layout layout[kMaxOperands];
  // Byte offsets of a row's runs, or null. Output rows with runs of several elements are not split.
  const std::int64_t* offsets[kMaxOperands];
  // Set with `offsets`: elements of a run, which have a common step; elements of a period, whose
  // offsets are repeated every `period_step` bytes.
  std::int64_t run[kMaxOperands], period[kMaxOperands], period_step[kMaxOperands];
  // Byte offsets of an operand's rows, replacing the pitch, or null.
  const std::int64_t* row_offsets[kMaxOperands] = {};
  bool streaming = false;  // write the output by non-temporal stores
  // An input is transposed, or rows share its cache lines, so that blocks have many rows.
  bool by_lines = false;
};

// A contiguous row of an output and an input, which may be the same.
[[gnu::always_inline]] inline Rows dense_row(char* output, char* input, std::int64_t length) {
  Rows rows;
  rows.length = length;
  rows.count = 1;
  rows.data[0] = output;
  rows.data[1] = input;
  rows.layout[0] = rows.layout[1] = Layout::in_place;
  return rows;
}

using RowKernel = void (*)(const Rows& rows, const void* parameters);

// Bounds as bits of the tensor's type; only scaled kernels read `scale` and `bias`.
struct ClipParameters {
  std::uint64_t min_bits = 0;
  std::uint64_t max_bits = 0;
  float scale = 1;
  float bias = 0;
};

// The interval of the input in which the gradient passes, as integers of the tensor's size that are
// ordered like its elements.
struct ClipGradParameters {
  std::uint64_t first = 0;
  std::uint64_t extent = 0;  // the last one minus the first one
  bool is_empty = false;
};

struct BatchNormalizationParameters {
  float epsilon = 0;
  ActivationParameters activation = {};
};

constexpr int kSumLanes = 16;             // of the sum over a group, in the softmax family
constexpr int kMomentLanes = 32;          // of the sums of normalizations
constexpr std::int64_t kSumBlock = 1024;  // elements of a block, whose lanes are added to the total

// A chunk of each group's elements: dense rows of `length` elements that begin at a multiple of
// kSumBlock. `max` is the maximum of the whole group.
struct GroupChunks {
  std::int64_t count = 0;  // groups
  std::int64_t length = 0;
  const void* input = nullptr;
  const float* max = nullptr;
};

// Computes the lanes of each block, [count][blocks][kSumLanes], of one or two sums, and the number
// of maxima. log_softmax: the sum excluding the maxima and the plain sum, side by side.
using GroupSumsKernel = void (*)(const GroupChunks& chunks, double* lanes, double* maxima);
// Computes the results from the sums over whole groups, [count][2] or [count].
using GroupFinishKernel = void (*)(const GroupChunks& chunks, const double* sums,
                                   const double* maxima, void* output);

// Operands of a reduction over groups. Those before kFirstGroupOperand have an element for each
// element of the input; the others have one for each group, and no strides in `elements`.
constexpr int kReductionOperands = 12;
constexpr int kFirstGroupOperand = 5;
// hardmax: the output in place of operand 0, if it has zeros and the ones are to be written.
constexpr int kZeroedOutput = kFirstGroupOperand;
// The lanes of the sums of the first sweep; those of the second sweep follow. Only for stages.
constexpr int kGroupSums = 10;

// Entries past `rank` are uninitialized, since clearing them would take a tenth of a small call.
struct ReductionNest {
  int rank = 0;
  std::int64_t sizes[kMaxRank];
  std::int64_t strides[kReductionOperands][kMaxRank];  // in bytes
};

// Calls task(context, part) for each part in [0, count), by several threads.
using ParallelFor = void (*)(int count, void (*task)(const void* context, int part),
                             const void* context);

// The groups that an operator reduces, and the range of groups that a call of the kernel computes.
// Operand 0 is the output, operand 1 the input; absent ones have null data.
struct Reduction {
  // A group's elements are counted in row-major order over the reduced dimensions; that order fixes
  // the lanes of a sum, for any strides. The outermost dimension comes first.
  const ReductionNest& elements;
  const ReductionNest& kept;  // the dimensions that count groups, the innermost first
  char* data[kReductionOperands] = {};
  std::int64_t first = 0, end = 0;
  bool streaming = false;  // write the output by non-temporal stores
  // Groups that are distributed over processes are reduced in stages. Stage s writes the sums of
  // sweep s over a block of each group, given the sums of the previous sweeps over whole groups of
  // `group_elements`. The stage after the sweeps computes the results of a chunk of each group.
  int stage = kAllStages;
  std::int64_t group_elements = 0;
  static constexpr int kAllStages = -1;
  // Few groups are computed in parts, by several threads. A part has some blocks of the groups'
  // sums or, `by_lanes`, some lanes of the sums of up to kPartGroups groups that lie side by side.
  // The kernel calls `parallel_for`, and keeps sums in `part_sums`.
  int parts = 1;
  bool by_lanes = false;
  // Up to kPartGroups groups are split into columns, one for each index of their outermost
  // dimension. Sums are added up down columns of at least kSumBlock elements, otherwise along rows.
  bool split = false;
  ParallelFor parallel_for = nullptr;
  void* part_sums = nullptr;
};

constexpr std::int64_t kPartGroups = 64;
constexpr int kMaxParts = 64;
constexpr int kMaxPartSums = 3;  // of a sweep
// The bytes of the sums by lanes: of two sweeps.
constexpr std::size_t kPartSumBytes =
    2 * kMaxPartSums * kMomentLanes * kPartGroups * sizeof(double);

constexpr std::int64_t sum_blocks(std::int64_t elements) { return ceil_div(elements, kSumBlock); }
// The bytes of the lanes of each block's sums and of their totals, in float64.
constexpr std::size_t part_sum_bytes(std::int64_t groups, std::int64_t elements,
                                     std::int64_t lanes) {
  return static_cast<std::size_t>(groups * (sum_blocks(elements) + 1) * lanes) * sizeof(double);
}

using ReductionKernel = void (*)(const Reduction& reduction, const void* parameters);

// Mean-variance normalization, and batch normalization with the statistics of the input.
enum StatisticsOperand {
  kStatisticsScale = 2,
  kStatisticsBias,
  kStatisticsAdded,
  kStatisticsMean = kFirstGroupOperand,  // outputs
  kStatisticsVariance
};

struct StatisticsParameters {
  float epsilon = 0;
  bool use_mean = true;
  bool use_variance = true;
  // True if scale and bias have one element for each group. Results are rounded differently then,
  // so it follows from sizes, not from strides.
  bool per_group = true;
  RowKernel activation = nullptr;  // of float32; null: none
  ActivationParameters activation_parameters = {};
};

// The gradients of batch normalization. The last two operands are outputs.
enum GradientOperand {
  kOutputGradient = 2,
  kGradientMean = kFirstGroupOperand,
  kGradientVariance,
  kGradientScale,
  kScaleGradient,
  kBiasGradient
};

struct GradientParameters {
  float epsilon = 0;
  bool training = false;  // mean and variance depend on the input
};

constexpr std::size_t kFloatTypes = 2;  // float32, float16: the order of the tables' second index

struct KernelTable {
  const char* name;                       // set by isa.cpp
  RowKernel copy[4];                      // by the logarithm of the element size
  RowKernel clip[kDataTypeCount];         // by DataType; null where clip does not take the type
  RowKernel clip_scaled[kDataTypeCount];  // x * scale + bias first
  RowKernel clip_grad[kDataTypeCount];
  RowKernel parameterized_relu[kDataTypeCount];
  RowKernel activation[kActivationCount][kFloatTypes];
  RowKernel shrink_integer[kDataTypeCount];
  RowKernel batch_normalization[kFusableActivationCount][kFloatTypes];  // identity: no activation
  ReductionKernel log_softmax[kFloatTypes];
  GroupSumsKernel log_softmax_sums[kFloatTypes];
  GroupFinishKernel log_softmax_finish[kFloatTypes];
  ReductionKernel softmax[kFloatTypes];
  GroupSumsKernel softmax_sums[kFloatTypes];
  GroupFinishKernel softmax_finish[kFloatTypes];
  ReductionKernel hardmax[kFloatTypes];
  ReductionKernel statistics[kFloatTypes];
  ReductionKernel gradients[kFloatTypes];
};

constexpr std::size_t float_index(DataType type) { return type == DataType::float16 ? 1 : 0; }

}  // namespace dmlops
