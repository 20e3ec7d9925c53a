// Transforms of two inputs. The traversal packs operand 1 into blocks; operand 2 is read in place
// if it is dense, and otherwise packed here, block by block.
#pragma once

#include "kernels/blocks/transform.hpp"

namespace dmlops::DMLOPS_TARGET {

// True if the rows of a block are contiguous in the output and in the input, so that they are one
// row.
DMLOPS_INLINE bool has_contiguous_rows(const Block& block, std::int64_t pitch) {
  return block.output_offsets == nullptr && block.output_pitch == pitch &&
         block.input_pitch == pitch;
}

// Packs operand 2 for as many rows of a block as fit the buffer, and calls row(output, input,
// second, length) for each. The buffer is padded, so that a full vector can be read from short
// rows.
template <class T, class Row>
DMLOPS_NO_INLINE void pack_pairs(const Block& block, const Row& row) {
  constexpr std::int64_t size = sizeof(T), capacity = kBlockBytes / size;
  alignas(kVectorBytes) char packed[kBlockBytes + kVectorBytes + kSpill] = {};
  const Rows& rows = *block.rows;
  for (std::int64_t column = 0, length; column < block.length; column += length) {
    length = min(capacity, block.length - column);
    for (std::int64_t r = 0, count; r < block.count; r += count) {
      count = min(capacity / length, block.count - r);
      const std::int64_t first = block.column + column;
      pack<Bits<T>>(packed, length * size, length, count, source_of(rows, 2, block.row + r, first),
                    true);
      const std::int64_t together = has_contiguous_rows(block, length * size) ? count : 1;
      for (std::int64_t k = 0; k < count; k += together)
        row(block.output_row(r + k) + column * size, block.input_row(r + k) + column * size,
            packed + k * length * size, length * together);
    }
  }
}

template <class T, class Row>
DMLOPS_INLINE void for_each_pair_of_rows(const Block& block, std::int64_t shortest,
                                         const Row& row) {
  constexpr std::int64_t size = sizeof(T);
  const Rows& rows = *block.rows;
  const std::int64_t pitch = block.length * size;
  const std::int64_t together =
      rows.pitch[2] == pitch && has_contiguous_rows(block, pitch) ? block.count : 1;
  if (rows.layout[2] != Layout::in_place || block.length * together < shortest)
    return pack_pairs<T>(block, row);
  const char* second = rows.data[2] + block.row * rows.pitch[2] + block.column * size;
  for (std::int64_t r = 0; r < block.count; r += together, second += rows.pitch[2])
    row(block.output_row(r), block.input_row(r), second, block.length * together);
}

template <class T, class V, class Formula>
void transform_pairs(const Block& given, const void* context) {
  const Formula formula = *static_cast<const Formula*>(context);
  const Block block = given;
  for_each_pair_of_rows<T>(
      block, kLanes<V>,
      [&formula](char* output, const char* input, const char* second, std::int64_t length) {
        const auto* const other = reinterpret_cast<const T*>(second);
        transform_row<V, 4>(reinterpret_cast<T*>(output), reinterpret_cast<const T*>(input), length,
                            [&](V x, std::int64_t i)
                                DMLOPS_LAMBDA_INLINE { return formula(x, load<V>(other + i)); });
      });
}

// A scalar transform.
template <class T, class Formula>
void transform_pairs_of_elements(const Block& given, const void* context) {
  const Formula formula = *static_cast<const Formula*>(context);
  const Block block = given;
  for_each_pair_of_rows<T>(
      block, 0,
      [&formula](char* output, const char* input, const char* second, std::int64_t length) {
        constexpr std::int64_t size = sizeof(T);
        for (std::int64_t i = 0; i < length; ++i)
          store_element(output + i * size, formula(load_element<T>(input + i * size),
                                                   load_element<T>(second + i * size)));
      });
}

// Applies a formula on vectors of type V to every pair of elements.
template <class T, class V, class Formula>
DMLOPS_INLINE void map_pairs(const Rows& rows, const Formula& formula) {
  traverse(rows, {sizeof(T), {&transform_pairs<T, V, Formula>}, &formula, false});
}
template <class T, class Formula>
DMLOPS_INLINE void map_pairs_of_elements(const Rows& rows, const Formula& formula) {
  traverse(rows, {sizeof(T), {&transform_pairs_of_elements<T, Formula>}, &formula, false});
}

}  // namespace dmlops::DMLOPS_TARGET
