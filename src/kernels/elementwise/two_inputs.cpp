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

// The bits of floats, with those of negative numbers inverted but for the sign, are ordered as
// signed integers; -0 comes before 0. NaN stays NaN.
template <class I, I kInfinityBits, I kNan>
struct WithinFloats {
  using U = std::make_unsigned_t<I>;
  static constexpr I kAbs = std::numeric_limits<I>::max();  // the mask of all bits but the sign

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
