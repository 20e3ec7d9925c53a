// Transforms of two inputs. An element that is broadcast along a long row is kept in a register.
// The traversal packs other rows of operand 1 into blocks unless they are dense; those of operand 2
// are packed here.
#pragma once

#include "kernels/blocks/transform.hpp"

namespace dmlops::DMLOPS_TARGET {

// Loads an element into each lane.
template <class V, class T>
DMLOPS_INLINE V load_broadcast(const T* source) {
  using U = Bits<T>;
  const auto elements = splat<typename VectorOf<U, kLanes<V> * sizeof(T)>::type>(
      load_element<U>(reinterpret_cast<const char*>(source)));
  return load<V>(reinterpret_cast<const T*>(&elements));
}

// Returns the operand that is constant along rows, or 0 if none is or the rows are short. Constants
// of short rows are packed, so that several rows are transformed as one.
template <class T>
DMLOPS_INLINE int constant_operand(const Rows& rows) {
  if (kForSize || rows.length * std::int64_t{sizeof(T)} < 192) return 0;
  if (rows.layout[1] == Layout::broadcast) return 1;
  return rows.layout[2] == Layout::broadcast ? 2 : 0;
}

// Calls row(output, input, second, length) for each row of a block, or for contiguous rows
// together. Operand 2 is packed unless it is dense or constant, for as many rows as fit the buffer.
// The buffer is padded, so that rows shorter than `shortest` can be read as a full vector.
template <class T, class Row>
DMLOPS_INLINE void for_each_pair_of_rows(const Block& block, std::int64_t shortest, int constant,
                                         const Row& row) {
  constexpr std::int64_t size = sizeof(T), capacity = kBlockBytes / size, line = kLineBytes / size;
  alignas(kVectorBytes) char packed[kBlockBytes + kVectorBytes + kSpill];
  const Rows& rows = *block.rows;
  const auto is_contiguous = [&block, constant](std::int64_t pitch, std::int64_t second_pitch) {
    return constant == 0 && block.output_offsets == nullptr && block.output_pitch == pitch &&
           block.input_pitch == pitch && second_pitch == pitch;
  };
  const std::int64_t together = is_contiguous(block.length * size, rows.pitch[2]) ? block.count : 1;
  const bool dense = rows.layout[2] == Layout::in_place && block.length * together >= shortest;
  const bool packs = !dense && constant != 2;
  // Columns of contiguous elements are packed by cache lines.
  const bool transposed = rows.pitch[2] == size && rows.step[2] != size;
  const std::int64_t longest = !packs       ? block.length
                               : transposed ? capacity / min(block.count, line)
                                            : capacity;
  for (std::int64_t column = 0, length; column < block.length; column += length) {
    length = min(longest, block.length - column);
    const std::int64_t second_pitch = packs ? length * size : rows.pitch[2];
    const bool contiguous = is_contiguous(length * size, second_pitch);
    for (std::int64_t r = 0, count; r < block.count; r += count) {
      count = packs ? min(capacity / length, block.count - r) : block.count;
      const Source source = source_of(rows, 2, block.row + r, block.column + column);
      // Equal rows are packed once.
      if (packs && (r == 0 || rows.pitch[2] != 0)) {
        pack<Bits<T>>(packed, second_pitch, length, count, source, true);
        std::memset(packed + count * second_pitch, 0, kVectorBytes);
      }
      const char* second = packs ? packed : source.data;
      const std::int64_t rows_together = contiguous ? count : 1;
      for (std::int64_t k = 0; k < count; k += rows_together, second += second_pitch)
        row(reinterpret_cast<T*>(block.output_row(r + k)) + column,
            reinterpret_cast<const T*>(block.input_row(r + k)) + (constant == 1 ? 0 : column),
            reinterpret_cast<const T*>(second), length * rows_together);
    }
  }
}

// Transforms a row. Inlined into the loop over rows, it would spill registers.
template <class T, class V, class Formula>
DMLOPS_NO_INLINE void transform_pair_of_rows(T* output, const T* input, const T* second,
                                             std::int64_t length, int constant,
                                             const Formula& given) {
  const Formula formula = given;
  if (!kForSize && constant == 1) {
    const V x = load_broadcast<V>(input);
    return transform_row<V, 4>(output, second, length, [&](V y, std::int64_t) DMLOPS_LAMBDA_INLINE {
      return formula(x, y);
    });
  }
  if (!kForSize && constant == 2) {
    const V y = load_broadcast<V>(second);
    return transform_row<V, 4>(output, input, length, [&](V x, std::int64_t) DMLOPS_LAMBDA_INLINE {
      return formula(x, y);
    });
  }
  transform_row<V, 4>(output, input, length, [&](V x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
    return formula(x, load<V>(second + i));
  });
}

template <class T, class V, class Formula>
void transform_pairs(const Block& block, const void* context) {
  const Formula& formula = *static_cast<const Formula*>(context);
  const int constant = constant_operand<T>(*block.rows);
  for_each_pair_of_rows<T>(
      block, kLanes<V>, constant,
      [&formula, constant](T* output, const T* input, const T* second, std::int64_t length)
          DMLOPS_LAMBDA_INLINE {
            transform_pair_of_rows<T, V>(output, input, second, length, constant, formula);
          });
}

// A scalar transform.
template <class T, class Formula>
DMLOPS_NO_INLINE void transform_pairs_of_a_row(char* output, const char* input, const char* second,
                                               std::int64_t length, const Formula& formula) {
  constexpr std::int64_t size = sizeof(T);
  for (std::int64_t i = 0; i < length; ++i)
    store_element(output + i * size,
                  formula(load_element<T>(input + i * size), load_element<T>(second + i * size)));
}
template <class T, class Formula>
void transform_pairs_of_elements(const Block& block, const void* context) {
  const Formula& formula = *static_cast<const Formula*>(context);
  for_each_pair_of_rows<T>(
      block, 0, 0,
      [&formula](T* output, const T* input, const T* second, std::int64_t length)
          DMLOPS_LAMBDA_INLINE {
            transform_pairs_of_a_row<T>(reinterpret_cast<char*>(output),
                                        reinterpret_cast<const char*>(input),
                                        reinterpret_cast<const char*>(second), length, formula);
          });
}

// Applies a formula on vectors of type V to every pair of elements.
template <class T, class V, class Formula>
DMLOPS_INLINE void map_pairs(const Rows& rows, const Formula& formula) {
  const bool reads_constants = constant_operand<T>(rows) == 1;
  traverse(rows, {sizeof(T), {&transform_pairs<T, V, Formula>}, &formula, false, reads_constants});
}
template <class T, class Formula>
DMLOPS_INLINE void map_pairs_of_elements(const Rows& rows, const Formula& formula) {
  traverse(rows, {sizeof(T), {&transform_pairs_of_elements<T, Formula>}, &formula, false});
}

}  // namespace dmlops::DMLOPS_TARGET
