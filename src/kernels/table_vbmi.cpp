// The kernels with table lookups of bytes, for which AVX-512 VBMI has an instruction.
#include "kernels/elementwise/clip.hpp"
#include "kernels/elementwise/shrink.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_byte_kernels(KernelTable& table) {
  constexpr auto int8 = static_cast<std::size_t>(DataType::int8);
  constexpr auto uint8 = static_cast<std::size_t>(DataType::uint8);
  table.clip_scaled[int8] = &clip_scaled<std::int8_t>;
  table.clip_scaled[uint8] = &clip_scaled<std::uint8_t>;
  table.shrink_integer[int8] = &shrink_integer<std::int8_t>;
  table.shrink_integer[uint8] = &shrink_integer<std::uint8_t>;
}

}  // namespace dmlops::DMLOPS_TARGET
