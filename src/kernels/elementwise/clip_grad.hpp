// clip_grad and relu_grad: the gradient where the input is within an interval, and 0 elsewhere.
#pragma once

#include "kernels/blocks/transform_pairs.hpp"

namespace dmlops::DMLOPS_TARGET {

// Selects elements of the gradient by integers that are ordered like the elements of the input. An
// interval is a single unsigned comparison, which also orders signed integers.
template <class U>
struct Within {
  Vec<U> first, extent, kept;
  explicit Within(const ClipGradParameters& p)
      : first(splat<Vec<U>>(static_cast<U>(p.first))),
        extent(splat<Vec<U>>(static_cast<U>(p.extent))),
        kept(splat<Vec<U>>(static_cast<U>(p.is_empty ? 0 : ~U(0)))) {}
  DMLOPS_INLINE Vec<U> operator()(Vec<U> key, Vec<U> gradient) const {
    return bit_cast<Vec<U>>((key - first) <= extent) & gradient & kept;
  }
};

// The bits of floats, with those of negative numbers inverted but for the sign, are ordered as
// signed integers; -0 comes before 0. NaN stays NaN.
template <class I, I kInfinityBits, I kNan>
struct WithinFloats {
  using U = std::make_unsigned_t<I>;
  static constexpr I kAbs = static_cast<I>(static_cast<U>(~U(0)) >> 1);

  Within<U> within;
  explicit WithinFloats(const ClipGradParameters& p) : within(p) {}
  DMLOPS_INLINE Vec<U> operator()(Vec<U> bits, Vec<U> gradient) const {
    const auto x = bit_cast<Vec<I>>(bits);
    const Vec<I> key = x ^ ((x >> (8 * static_cast<int>(sizeof(I)) - 1)) & kAbs);
    const Vec<U> selected = within(bit_cast<Vec<U>>(key), gradient);
    return (x & kAbs) > kInfinityBits ? splat<Vec<U>>(static_cast<U>(kNan)) : selected;
  }
};

// T is float, float16, or an unsigned integer, which also stands for the signed integer.
template <class T>
void clip_grad(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const ClipGradParameters*>(parameters);
  using U = Bits<T>;
  if constexpr (std::is_same_v<T, float>) {
    map_pairs<U, Vec<U>>(rows, WithinFloats<std::int32_t, 0x7f800000, 0x7fc00000>(p));
  } else if constexpr (std::is_same_v<T, float16>) {
    map_pairs<U, Vec<U>>(rows, WithinFloats<std::int16_t, 0x7c00, 0x7e00>(p));
  } else {
    map_pairs<U, Vec<U>>(rows, Within<U>(p));
  }
}

}  // namespace dmlops::DMLOPS_TARGET
