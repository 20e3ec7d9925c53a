// What both ways through a group of log_softmax share: its elements, the shape of its sum, and the
// steps.
//
// In a group of 128 elements or more, element i goes to lane i % 64. A lane adds up 64 elements,
// and then the sums of those; at the end lane j takes in lane j + 32, then j + 16, and so on. A
// shorter group has a single lane. Both ways keep to this shape, which makes the result independent
// of instruction set and layout.
#pragma once

#include "kernels/log_softmax_terms.hpp"
#include "kernels/tile.hpp"

namespace dmlops::DMLOPS_TARGET {

constexpr int kSumSteps = 64;
constexpr std::int64_t kOneLane = 128;  // elements in the smallest group with more than one lane
static_assert(kSumBlock == kSumLanes * kSumSteps);

template <class T>
inline constexpr T kNegativeInfinity = -__builtin_inff();
template <>
inline constexpr float16 kNegativeInfinity<float16>{0xfc00u};

// The larger, or smaller; a NaN in x is passed over (it comes back through the sum).
DMLOPS_INLINE f32x running_max(f32x max, f32x x) { return at_least(max, x); }
DMLOPS_INLINE f32x running_min(f32x min, f32x x) { return at_most(min, x); }

// All lanes in one, by an operation whose order does not matter: quarters of 16 bytes first.
template <class V, class Operation>
DMLOPS_INLINE Lane<V> fold(V v, const Operation& operation) {
  using Quad = typename VectorOf<Lane<V>, 16>::type;
  alignas(kVectorBytes) Lane<V> lanes[kLanes<V>];
  store(lanes, v);
  Quad quad = load<Quad>(lanes);
  for (int i = kLanes<Quad>; i < kLanes<V>; i += kLanes<Quad>) {
    quad = operation(quad, load<Quad>(lanes + i));
  }
  const Lane<V> a = quad[0], b = quad[1], c = quad[2], d = quad[3];
  return operation(operation(a, b), operation(c, d));
}

// The least and the largest of elements.
struct Range {
  f32x min = splat<f32x>(kInfinity), max = splat<f32x>(-kInfinity);

  DMLOPS_INLINE void operator+=(f32x x) {
    min = running_min(min, x);
    max = running_max(max, x);
  }
  DMLOPS_INLINE void operator+=(const Range& other) {
    min = running_min(min, other.min);
    max = running_max(max, other.max);
  }
  DMLOPS_INLINE float least() const {
    return fold(min, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return at_most(a, b); });
  }
  DMLOPS_INLINE float largest() const {
    return fold(max, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return at_least(a, b); });
  }
};

// Groups that are done together: their subtrahends, and the steps there, which `Way` knows.
//
// `near` are groups whose elements lie close to their maximum, and that close to 0, as nearly all
// do. It saves work and changes no result.
template <class Way, class T, int kCapacity>
class Batch {
 protected:
  void run(std::int64_t count) {
    Way& way = static_cast<Way&>(*this);
    Range range;
    way.find_maxima(range);
    const float least = range.least(), largest = range.largest();
    if (least > -0x1p20f && largest < 0x1p20f && largest - least < 130) {
      way.template add_up<true>();
    } else {
      way.template add_up<false>();
    }
    subtrahends_.compute(count);
    i32x near = splat<i32x>(std::is_same_v<T, float> ? -1 : 0);
    const std::int64_t whole = count / kLanes<f32x> * kLanes<f32x>;
    for (std::int64_t k = 0; k < whole; k += kLanes<f32x>) {
      const f32x high = load<f32x>(subtrahends_.high + k);
      near &= (high > 0.0f) & (high < 0x1p20f) & (high >= -least);
    }
    bool all_near = fold(near, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a & b; }) != 0;
    for (std::int64_t k = whole; k < count; ++k) {
      const float high = subtrahends_.high[k];
      all_near = all_near && high > 0 && high < 0x1p20f && high >= -least;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (all_near) return way.template finish<true>();
    }
    way.template finish<false>();
  }

  Subtrahends<T, kCapacity> subtrahends_ = {};
};

// Where the elements of one group lie.
struct GroupShape {
  int rank;
  const std::int64_t* sizes;
  const std::int64_t* strides;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (int d = 0; d < rank; ++d) product *= sizes[d];
    return product;
  }

  std::int64_t run() const { return sizes[rank - 1]; }     // elements that follow each other ...
  std::int64_t step() const { return strides[rank - 1]; }  // ... at this distance

  // visit(offset of a run in memory, its index in the part, its length) for the part [begin, end)
  // of the group.
  template <class Visit>
  DMLOPS_INLINE void for_each_run(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    if (rank == 1) return visit(begin * step(), 0, end - begin);
    const std::int64_t inner = run();
    for (std::int64_t i = begin; i < end;) {
      std::int64_t index = i / inner, offset = (i % inner) * step();
      for (int d = rank - 2; d >= 0; --d) {
        offset += (index % sizes[d]) * strides[d];
        index /= sizes[d];
      }
      const std::int64_t length = least(inner - i % inner, end - i);
      visit(offset, i - begin, length);
      i += length;
    }
  }
};

}  // namespace dmlops::DMLOPS_TARGET
