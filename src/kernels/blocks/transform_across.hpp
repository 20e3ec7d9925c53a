// Transforms of contiguous rows by vectors that extend into the next row.
#pragma once

#include "kernels/blocks/transform.hpp"

namespace dmlops::DMLOPS_TARGET {

// True for contiguous rows, each at least a vector long, whose vectors may extend into the next
// row. Regular stores: not if a forward loop would stall on store-to-load aliasing, as in
// transform_row().
template <class V, class Out, class T>
bool crosses_rows(const Block& rows, bool streaming, int input = 0) {
  const DenseRows<const char>& source = rows.inputs[input];
  return rows.length >= kLanes<V> &&
         rows.output.is_contiguous(rows.length * std::int64_t{sizeof(Out)}) &&
         source.is_contiguous(rows.length * std::int64_t{sizeof(T)}) &&
         (streaming || !trails_closely(rows.output.data, source.data));
}

// Writes an aligned vector, the result of the one at `source`.
template <bool kStreaming, class Out, class T, class V>
DMLOPS_INLINE void write_across(Out* target, const T* source, V result) {
  if constexpr (kStreaming) {
    __builtin_prefetch(reinterpret_cast<const char*>(source) + kStreamedAhead);
    store_non_temporal(target, result);
  } else {
    store(target, result);
  }
}

// Computes `count` contiguous rows with constants of their own, by vectors that are aligned in the
// output. formula(constants, v) returns the results of a vector of the input; constants_of(r)
// returns a row's constants, and constants.before(n, next) those of a vector whose lanes from n on
// are in the next row.
template <bool kStreaming, class V, class Out, class T, class ConstantsOf, class Formula>
DMLOPS_INLINE void transform_across(Out* output, const T* input, std::int64_t length,
                                    std::int64_t count, const ConstantsOf& constants_of,
                                    const Formula& formula) {
  constexpr std::int64_t lanes = kLanes<V>;
  // As in transform_row(), the first and the last vector are computed first and stored last.
  auto constants = constants_of(0);
  const std::int64_t last = length * count - lanes;
  const V head = formula(constants, load<V>(input));
  const V tail = formula(constants_of(count - 1), load<V>(input + last));
  std::int64_t i = distance_to_alignment<V>(output);
  for (std::int64_t next_row = 1, end = length;; ++next_row, end += length) {
    const std::int64_t whole = i + (end - i) / lanes * lanes;
    for (; i < whole; i += lanes)
      write_across<kStreaming>(output + i, input + i, formula(constants, load<V>(input + i)));
    if (next_row == count) break;
    const auto next = constants_of(next_row);
    const V across = formula(constants.before(end - i, next), load<V>(input + i));
    write_across<kStreaming>(output + i, input + i, across);
    i += lanes;
    constants = next;
  }
  store(output, head);
  store(output + last, tail);
}

// Computes `count` contiguous rows by a formula that depends on the column, likewise.
// formula(column, v) also gets the vectors that extend into the next row. begin(i) may compute the
// rows from element i on, the first that is aligned, and returns the first remaining element, of
// the same column.
template <bool kStreaming, class V, class Out, class T, class Formula, class Begin>
DMLOPS_INLINE void transform_across_columns(Out* output, const T* input, std::int64_t length,
                                            std::int64_t count, const Formula& formula,
                                            const Begin& begin) {
  constexpr std::int64_t lanes = kLanes<V>;
  const std::int64_t last = length * count - lanes;
  const V head = formula(0, load<V>(input)), tail = formula(length - lanes, load<V>(input + last));
  std::int64_t column = distance_to_alignment<V>(output) % lanes, i = begin(column);
  while (i <= last) {
    // Up to the vector that extends into the next row.
    const std::int64_t end = min(last, i + length - 1 - column), offset = column - i;
    for (; i <= end; i += lanes)
      write_across<kStreaming>(output + i, input + i, formula(i + offset, load<V>(input + i)));
    column = i + offset - length;
  }
  store(output, head);
  store(output + last, tail);
}

}  // namespace dmlops::DMLOPS_TARGET
