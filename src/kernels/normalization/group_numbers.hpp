// The operands of groups down columns that have a number for each group, such as the mean.
#pragma once

#include "kernels/blocks/column_vectors.hpp"
#include "kernels/simd/doubles.hpp"

namespace dmlops::DMLOPS_TARGET {

// Loads the numbers of `count` groups from `first` on, at most 64.
template <class T>
void load_numbers(const Reduction& reduction, int operand, std::int64_t first, std::int64_t count,
                  double* numbers) {
  OperandGroups<kColumns> groups;
  groups.select(reduction.kept, operand, first, count);
  const char* const data = reduction.data[operand];
  const bool uniform = groups.is_uniform();
  const auto convert = [&](const char* elements) {
    for_each_vector(count, [&](std::int64_t c) {
      store(numbers + c, load_doubles(reinterpret_cast<const T*>(elements) + c));
    });
  };
  if (uniform && groups.step == sizeof(T) && count % kFloatLanes == 0)
    return convert(data + groups.runs[0].offset);
  alignas(kVectorBytes) char packed[kColumns * sizeof(T)] = {};
  pack<Bits<T>>(packed, 0, count, 1,
                {uniform ? data + groups.runs[0].offset : data, 0, groups.step,
                 uniform ? nullptr : groups.offsets()});
  convert(packed);
}

// Writes the numbers of `count` groups from `first` on, at most 64.
template <class T>
void store_numbers(const Reduction& reduction, int operand, std::int64_t first, std::int64_t count,
                   const T* numbers) {
  char* const data = reduction.data[operand];
  const auto* const packed = reinterpret_cast<const char*>(numbers);
  OperandGroups<kColumns> groups;
  groups.select(reduction.kept, operand, first, count);
  if (groups.is_uniform() && groups.step == sizeof(T)) {
    copy_run(data + groups.runs[0].offset, packed, count * groups.step);
  } else {
    unpack<Bits<T>>(data, 0, groups.offsets(), packed, count);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
