// Turns tensors of equal sizes and any strides into rows for a kernel, and runs them on the
// threads.
#include "plan.hpp"

#include <algorithm>

#include "dmlops/runtime.hpp"
#include "gathered.hpp"
#include "insertion_sort.hpp"
#include "isa.hpp"
#include "pool.hpp"

namespace dmlops {
namespace {

// From so much memory traffic on, or what takes as long, threads are worth waking.
constexpr std::int64_t kLeastToSplit = 512 * 1024;
constexpr std::int64_t kBytesPerPiece = 128 * 1024;  // at least

struct Dimension {
  std::int64_t size;
  std::int64_t strides[kMaxOperands];
};

// Are elements of the operand read for several of the output's?
bool is_broadcast(const Plan& plan, int operand) {
  const std::int64_t* const strides = plan.strides[operand];
  return std::any_of(strides, strides + plan.rank, [](std::int64_t stride) { return stride == 0; });
}

bool merges(const Dimension& inner, const Dimension& outer, int operands) {
  for (int k = 0; k < operands; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.size) return false;
  }
  return true;
}

// Every row reads the same one, and what comes of it stays in a cache?
bool repeats_a_row(const Plan& plan) {
  constexpr std::int64_t kMost = 128 * 1024;
  const std::int64_t size = plan.element_size;
  return size != 0 && plan.operands == 2 && plan.offsets == nullptr && plan.rank > 1 &&
         plan.strides[1][1] == 0 && plan.strides[0][0] == size && plan.sizes[0] * size <= kMost;
}

// Such rows are computed once and copied. Short ones that follow one another are computed until
// they are worth a copy.
void run_repeated(const Rows& rows, RowKernel kernel, const void* parameters) {
  constexpr std::int64_t kShort = 4 * 1024;
  const std::int64_t size = rows.step[0], bytes = rows.length * size;
  const bool together = rows.pitch[0] == bytes && bytes < kShort;
  Rows first = rows;
  first.count = together ? std::min(kShort / bytes, rows.count) : 1;
  first.non_temporal = false;  // it will be read
  kernel(first, parameters);

  Rows copies = rows;
  copies.length = first.count * rows.length;
  copies.pitch[0] = first.count * rows.pitch[0];
  copies.data[0] = first.data[0] + copies.pitch[0];
  copies.data[1] = first.data[0];
  copies.step[1] = size;
  copies.count = rows.count / first.count - 1;
  const RowKernel copy = copy_kernel(size);
  if (copies.count > 0) copy(copies, nullptr);
  copies.data[0] += copies.count * copies.pitch[0];
  copies.length = rows.count % first.count * rows.length;
  copies.count = 1;
  if (copies.length > 0) copy(copies, nullptr);
}

void run_once(const Rows& rows, RowKernel kernel, const void* parameters) {
  kernel(rows, parameters);
}

// Rows that are dense but so short that calling a kernel for each few of them takes long.
bool has_layers(const Plan& plan) {
  constexpr std::int64_t kShort = 512;
  const std::int64_t size = plan.element_size;
  return size != 0 && plan.operands == 2 && plan.rank > 2 && plan.sizes[0] * size <= kShort &&
         plan.strides[0][0] == size && plan.strides[1][0] == size && !repeats_a_row(plan);
}

void run_serially(const Plan& plan, char* const* data, RowKernel kernel, const void* parameters) {
  Rows rows;
  rows.length = plan.sizes[0];
  rows.count = plan.rank > 1 ? plan.sizes[1] : 1;
  rows.offsets = plan.offsets;
  rows.row_offsets = plan.row_offsets;
  rows.non_temporal = plan.non_temporal;
  for (int k = 0; k < plan.operands; ++k) {
    rows.data[k] = data[k];
    rows.step[k] = plan.strides[k][0];
    rows.pitch[k] = plan.rank > 1 ? plan.strides[k][1] : 0;
  }
  int outer = 2;  // the first dimension that a call of the kernel does not cover
  if (has_layers(plan)) {
    rows.layers = plan.sizes[outer];
    for (int k = 0; k < 2; ++k) rows.layer_pitch[k] = plan.strides[k][outer];
    ++outer;
  }
  const auto run_kernel = repeats_a_row(plan) ? run_repeated : run_once;
  std::int64_t index[kMaxRank] = {};
  for (;;) {
    run_kernel(rows, kernel, parameters);
    int d = outer;
    for (; d < plan.rank; ++d) {
      if (++index[d] < plan.sizes[d]) {
        for (int k = 0; k < plan.operands; ++k) rows.data[k] += plan.strides[k][d];
        break;
      }
      index[d] = 0;
      for (int k = 0; k < plan.operands; ++k)
        rows.data[k] -= plan.strides[k][d] * (plan.sizes[d] - 1);
    }
    if (d >= plan.rank) return;
  }
}

}  // namespace

Plan make_plan(const TensorView& output, const ConstTensorView* inputs, int input_count,
               std::int64_t work) {
  Plan plan;
  plan.operands = input_count + 1;
  plan.element_size = static_cast<std::int64_t>(element_size(output.type));
  plan.data[0] = static_cast<char*>(output.data);
  for (int k = 0; k < input_count; ++k) {
    // Kernels write operand 0 alone.
    plan.data[k + 1] = const_cast<char*>(static_cast<const char*>(inputs[k].data));
  }

  Dimension dimensions[kMaxRank];
  int rank = 0;
  for (int d = output.rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    const std::int64_t size = output.sizes[axis];
    if (size == 1) continue;
    Dimension& dimension = dimensions[rank++];
    dimension.size = size;
    dimension.strides[0] = output.strides[axis];
    for (int k = 0; k < input_count; ++k) {
      dimension.strides[k + 1] = inputs[k].sizes[axis] == 1 ? 0 : inputs[k].strides[axis];
    }
    if (dimension.strides[0] < 0) {  // backwards: begin at the other end
      for (int k = 0; k < plan.operands; ++k) {
        plan.data[k] += dimension.strides[k] * (size - 1);
        dimension.strides[k] = -dimension.strides[k];
      }
    }
  }
  insertion_sort(dimensions, rank, [](const Dimension& a, const Dimension& b) {
    return a.strides[0] < b.strides[0];
  });
  int merged = 0;
  for (int d = 0; d < rank; ++d) {
    if (merged > 0 && merges(dimensions[merged - 1], dimensions[d], plan.operands)) {
      dimensions[merged - 1].size *= dimensions[d].size;
    } else {
      dimensions[merged++] = dimensions[d];
    }
  }

  plan.rank = std::max(merged, 1);
  plan.sizes[0] = 1;
  for (int k = 0; k < plan.operands; ++k) plan.strides[k][0] = 0;
  for (int d = 0; d < merged; ++d) {
    plan.sizes[d] = dimensions[d].size;
    for (int k = 0; k < plan.operands; ++k) plan.strides[k][d] = dimensions[d].strides[k];
  }
  // Parameters count only where there is one for each element.
  plan.bytes_per_element = 2 * plan.element_size;
  for (int k = 2; k < plan.operands; ++k) {
    if (!is_broadcast(plan, k)) plan.bytes_per_element += plan.element_size;
  }
  plan.bytes_per_element = std::max(plan.bytes_per_element, work);
  return plan;
}

std::int64_t element_count(const Plan& plan) {
  std::int64_t count = 1;
  for (int d = 0; d < plan.rank; ++d) count *= plan.sizes[d];
  return count;
}

bool run_if_plain(const FloatEnvironment&, const ConstTensorView& input, const TensorView& output,
                  RowKernel kernel, const void* parameters, std::int64_t work) {
  const int rank = input.rank;
  if (output.type != input.type || output.rank != rank || rank < 0 || rank > kMaxRank) return false;
  const auto size = static_cast<std::int64_t>(element_size(input.type));
  const std::int64_t bytes_per_element = std::max(2 * size, work);
  std::int64_t length = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const auto axis = static_cast<std::size_t>(d);
    const std::int64_t count = input.sizes[axis];
    if (output.sizes[axis] != count) return false;
    if (count == 1) continue;
    if (input.strides[axis] != length * size || output.strides[axis] != length * size) return false;
    if (count <= 0 || count >= kLeastToSplit) return false;
    length *= count;
    if (length * bytes_per_element >= kLeastToSplit) return false;
  }
  const auto from = reinterpret_cast<std::uintptr_t>(input.data);
  const auto to = reinterpret_cast<std::uintptr_t>(output.data);
  const auto bytes = static_cast<std::uintptr_t>(length * size);
  if (from != to && (to - from < bytes || from - to < bytes)) return false;

  Rows rows;
  rows.length = length;
  rows.count = 1;
  rows.data[0] = static_cast<char*>(output.data);
  rows.data[1] = const_cast<char*>(static_cast<const char*>(input.data));  // kernels only read it
  rows.step[0] = rows.step[1] = size;
  rows.pitch[0] = rows.pitch[1] = 0;
  kernel(rows, parameters);
  return true;
}

namespace {

// The begin of piece i of `count` pieces of `size`; where `unit` fits, pieces begin at multiples of
// it.
std::int64_t piece_begin(std::int64_t size, std::int64_t count, std::int64_t i, std::int64_t unit) {
  const std::int64_t units = (size + unit - 1) / unit;
  return std::min(size, units / count * i * unit + std::min(i, units % count) * unit);
}

// Output and input are so large that a cache would not hold them. Where elements are packed first,
// reading does not overlap with the reading that usual stores cause, and half as much is enough.
// The transposition of a single large matrix writes lines that no processor foresees: a quarter.
bool is_large(const Plan& plan) {
  const std::int64_t threshold = non_temporal_threshold(), size = plan.element_size;
  const auto moved = [size](std::int64_t elements) { return 2 * size * elements; };
  const bool packed = plan.strides[1][0] != size;
  if (moved(element_count(plan)) >= threshold / (packed ? 2 : 1)) return true;
  const bool transposed =
      packed && plan.operands == 2 && plan.rank > 1 && plan.strides[1][1] == size;
  return transposed && moved(plan.sizes[0] * plan.sizes[1]) >= threshold / 4;
}

// Is each element of the output aligned, so that cache lines consist of whole ones?
bool is_aligned(const Plan& plan, const char* output) {
  const std::int64_t size = plan.element_size;
  return size != 0 &&
         reinterpret_cast<std::uintptr_t>(output) % static_cast<std::uintptr_t>(size) == 0 &&
         std::all_of(plan.strides[0], plan.strides[0] + plan.rank,
                     [size](std::int64_t stride) { return stride % size == 0; });
}

void run_rows(const Plan& plan, char* const* data, RowKernel kernel, const void* parameters) {
  const std::int64_t bytes = plan.bytes_per_element * element_count(plan);
  if (bytes < kLeastToSplit) return run_serially(plan, data, kernel, parameters);

  // The slowest dimension of which nobody gets over a quarter more than the average, or else the
  // largest. Pieces of a faster one may share the cache lines of the input.
  const std::int64_t shares = std::min<std::int64_t>(get_num_threads(), bytes / kBytesPerPiece);
  const auto shares_evenly = [&plan, shares](int d) {
    const std::int64_t most = (plan.sizes[d] + shares - 1) / shares;
    return 4 * most * shares <= 5 * plan.sizes[d];
  };
  int split = plan.rank - 1;
  const int first = plan.offsets == nullptr ? 0 : 1;  // rows with offsets stay whole
  while (split > first && !shares_evenly(split)) --split;
  if (!shares_evenly(split)) {
    split =
        static_cast<int>(std::max_element(plan.sizes + first, plan.sizes + plan.rank) - plan.sizes);
  }
  const std::int64_t unit = split == 0 ? plan.split_unit : 1;
  const std::int64_t units = (plan.sizes[split] + unit - 1) / unit;
  const auto pieces = static_cast<int>(std::min(shares, units));
  if (pieces == 1) return run_serially(plan, data, kernel, parameters);
  parallel_for(pieces, [&](int i) {
    const FloatEnvironment environment;
    const std::int64_t begin = piece_begin(plan.sizes[split], pieces, i, unit);
    Plan part = plan;
    part.sizes[split] = piece_begin(plan.sizes[split], pieces, i + 1, unit) - begin;
    for (int k = 0; k < plan.operands; ++k) part.data[k] = data[k] + begin * plan.strides[k][split];
    if (split == 1 && plan.row_offsets != nullptr) part.row_offsets += begin;
    run_serially(part, part.data, kernel, parameters);
  });
}

}  // namespace

void run(const FloatEnvironment&, const Plan& plan, char* const* data, RowKernel kernel,
         const void* parameters) {
  if (Gathered::worth(plan)) {
    run_rows(Gathered(plan).plan(), data, kernel, parameters);
  } else if (is_large(plan) && data[0] != data[1] && is_aligned(plan, data[0])) {
    Plan large = plan;
    large.non_temporal = true;
    run_rows(large, data, kernel, parameters);
  } else {
    run_rows(plan, data, kernel, parameters);
  }
}

}  // namespace dmlops
