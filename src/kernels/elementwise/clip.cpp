// The kernels of clip, and of shrink and copies on integers.
#include "kernels/elementwise/clip.hpp"

#include "kernels/elementwise/shrink.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class T>
void set_clip_of(KernelTable& table, DataType type) {
  table.clip[static_cast<std::size_t>(type)] = &clip<T>;
  table.clip_scaled[static_cast<std::size_t>(type)] = &clip_scaled<T>;
}

template <class T>
void set_shrink_of(KernelTable& table, DataType type) {
  table.shrink_integer[static_cast<std::size_t>(type)] = &shrink_integer<T>;
}

template <class U>
void copy(const Rows& rows, const void*) {
  map<U, Vec<U>, 4>(rows, [](Vec<U> x) DMLOPS_LAMBDA_INLINE { return x; });
}

}  // namespace

void set_clip(KernelTable& table) {
  set_clip_of<float>(table, DataType::float32);
  set_clip_of<float16>(table, DataType::float16);
  set_clip_of<std::int8_t>(table, DataType::int8);
  set_clip_of<std::int16_t>(table, DataType::int16);
  set_clip_of<std::int32_t>(table, DataType::int32);
  set_clip_of<std::int64_t>(table, DataType::int64);
  set_clip_of<std::uint8_t>(table, DataType::uint8);
  set_clip_of<std::uint16_t>(table, DataType::uint16);
  set_clip_of<std::uint32_t>(table, DataType::uint32);
  set_clip_of<std::uint64_t>(table, DataType::uint64);
  set_shrink_of<std::int8_t>(table, DataType::int8);
  set_shrink_of<std::int16_t>(table, DataType::int16);
  set_shrink_of<std::int32_t>(table, DataType::int32);
  set_shrink_of<std::uint8_t>(table, DataType::uint8);
  set_shrink_of<std::uint16_t>(table, DataType::uint16);
  set_shrink_of<std::uint32_t>(table, DataType::uint32);
  table.copy[0] = &copy<std::uint8_t>;
  table.copy[1] = &copy<std::uint16_t>;
  table.copy[2] = &copy<std::uint32_t>;
  table.copy[3] = &copy<std::uint64_t>;
}

}  // namespace dmlops::DMLOPS_TARGET
