// The kernels of clip, and of shrink and copies on integers.
#include "kernels/elementwise/clip.hpp"

#include "kernels/elementwise/shrink.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class... T>
void set_clips(KernelTable& table) {
  ((table.clip[kTypeIndex<T>] = &clip<T>, table.clip_scaled[kTypeIndex<T>] = &clip_scaled<T>), ...);
}

template <class... T>
void set_shrinks(KernelTable& table) {
  ((table.shrink_integer[kTypeIndex<T>] = &shrink_integer<T>), ...);
}

template <class U>
void copy(const Rows& rows, const void*) {
  map<U, Vec<U>, 4>(rows, [](Vec<U> x) DMLOPS_LAMBDA_INLINE { return x; });
}

}  // namespace

void set_clip(KernelTable& table) {
  set_clips<float, float16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
            std::uint16_t, std::uint32_t, std::uint64_t>(table);
  set_shrinks<std::int8_t, std::int16_t, std::int32_t, std::uint8_t, std::uint16_t, std::uint32_t>(
      table);
  table.copy[0] = &copy<std::uint8_t>;
  table.copy[1] = &copy<std::uint16_t>;
  table.copy[2] = &copy<std::uint32_t>;
  table.copy[3] = &copy<std::uint64_t>;
}

}  // namespace dmlops::DMLOPS_TARGET
