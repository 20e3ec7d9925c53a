// The kernels with table lookups of bytes, for which AVX-512 VBMI has an instruction.
#include "kernels/elementwise/clip.hpp"
#include "kernels/elementwise/shrink.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_byte_kernels(KernelTable& table) {
  table.clip_scaled[kTypeIndex<std::int8_t>] = &clip_scaled<std::int8_t>;
  table.clip_scaled[kTypeIndex<std::uint8_t>] = &clip_scaled<std::uint8_t>;
  table.shrink_integer[kTypeIndex<std::int8_t>] = &shrink_integer<std::int8_t>;
  table.shrink_integer[kTypeIndex<std::uint8_t>] = &shrink_integer<std::uint8_t>;
}

}  // namespace dmlops::DMLOPS_TARGET
