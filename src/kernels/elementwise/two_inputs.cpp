// The kernels of the elementwise operators with two inputs: clip_grad, also for relu_grad, and
// parameterized_relu.
#include <limits>

#include "kernels/blocks/transform_pairs.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

// clip_grad: the gradient where the input is within an interval, and 0 elsewhere.

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

// The bits of float16, with those of negative numbers inverted but for the sign, are ordered as
// signed integers; -0 comes before 0. NaN stays NaN.
struct WithinFloat16 {
  static constexpr std::int16_t kAbs = 0x7fff, kInfinityBits = 0x7c00, kNan = 0x7e00;

  Within<std::uint16_t> within;
  explicit WithinFloat16(const ClipGradParameters& p) : within(p) {}
  DMLOPS_INLINE Vec<std::uint16_t> operator()(Vec<std::uint16_t> bits,
                                              Vec<std::uint16_t> gradient) const {
    keep_in_register(bits);
    const auto x = bit_cast<Vec<std::int16_t>>(bits);
    const Vec<std::int16_t> key = x ^ ((x >> 15) & kAbs);
    const Vec<std::uint16_t> selected = within(bit_cast<Vec<std::uint16_t>>(key), gradient);
    return (x & kAbs) > kInfinityBits ? splat<Vec<std::uint16_t>>(kNan) : selected;
  }
};

// An interval of float32, from the number whose order is ClipGradParameters::first on. It is empty
// if the first number is beyond the last one, or if one of them is NaN: `is_empty` marks intervals
// of integers only. NaN stays NaN.
struct WithinFloat32 {
  f32x first, last;
  explicit WithinFloat32(const ClipGradParameters& p)
      : first(number(p.first)), last(number(p.first + p.extent)) {}
  DMLOPS_INLINE f32x operator()(f32x x, f32x gradient) const {
    keep_in_register(x);
    const f32x zero = {}, selected = ((x >= first) & (x <= last)) ? gradient : zero;
    return x == x ? selected : splat<f32x>(__builtin_nanf(""));
  }

 private:
  static f32x number(std::uint64_t key) {
    const auto bits = static_cast<std::int32_t>(key);
    return bit_cast<f32x>(splat<i32x>(bits >= 0 ? bits : bits ^ INT32_MAX));
  }
};

// T is float, float16, or an unsigned integer, which also stands for the signed integer.
template <class T>
void clip_grad(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const ClipGradParameters*>(parameters);
  using U = Bits<T>;
  if constexpr (std::is_same_v<T, float>) {
    map_pairs<T, f32x>(rows, WithinFloat32(p));
  } else if constexpr (std::is_same_v<T, float16>) {
    map_pairs<U, Vec<std::uint16_t>>(rows, WithinFloat16(p));
  } else {
    map_pairs<U, Vec<U>>(rows, Within<U>(p));
  }
}

// parameterized_relu: x >= 0 ? x : slope x. Products of integers saturate.

// The integer type of the exact product of two elements.
template <class T>
using WideProduct = std::conditional_t<sizeof(T) == 4, std::int64_t, std::int32_t>;

template <class T>
void parameterized_relu(const Rows& rows, const void*) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, float16>) {
    map_pairs<T, f32x>(rows, [](f32x x, f32x slope) DMLOPS_LAMBDA_INLINE {
      return canonical_nan(x >= 0.0f ? x : slope * x);
    });
  } else {
    map_pairs_of_elements<T>(rows, [](T x, T slope) DMLOPS_LAMBDA_INLINE {
      constexpr WideProduct<T> max = std::numeric_limits<T>::max();
      constexpr WideProduct<T> min = -max - 1;
      const WideProduct<T> product = WideProduct<T>{x} * slope;
      const WideProduct<T> below = product > max ? max : product < min ? min : product;
      return x >= 0 ? x : static_cast<T>(below);
    });
  }
}

// Integers of both signs share a kernel.
template <class... T>
void set_clip_grads(KernelTable& table) {
  ((table.clip_grad[kTypeIndex<T>] = &clip_grad<Bits<T>>), ...);
}

template <class... T>
void set_parameterized_relus(KernelTable& table) {
  ((table.parameterized_relu[kTypeIndex<T>] = &parameterized_relu<T>), ...);
}

}  // namespace

void set_two_inputs(KernelTable& table) {
  table.clip_grad[kTypeIndex<float>] = &clip_grad<float>;
  table.clip_grad[kTypeIndex<float16>] = &clip_grad<float16>;
  set_clip_grads<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                 std::uint32_t, std::uint64_t>(table);
  set_parameterized_relus<float, float16, std::int8_t, std::int16_t, std::int32_t>(table);
}

}  // namespace dmlops::DMLOPS_TARGET
