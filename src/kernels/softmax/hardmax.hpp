// hardmax: 1 at the first maximum of each group, and 0 elsewhere.
#pragma once

#include "kernels/blocks/group_sum.hpp"
#include "kernels/blocks/group_tiles.hpp"
#include "kernels/simd/fold.hpp"
#include "kernels/simd/math.hpp"

namespace dmlops::DMLOPS_TARGET {

// Loads a vector of a row's elements from i on; lanes past the end repeat the first element.
template <class T>
DMLOPS_INLINE f32x load_repeated(const T* x, std::int64_t i, std::int64_t used) {
  return used == kLanes<f32x>
             ? load<f32x>(x + i)
             : load_partial<f32x>(x + i, static_cast<std::size_t>(used),
                                  load_element<T>(reinterpret_cast<const char*>(x + i)));
}

// The index of the first maximum, or of the first NaN.
template <class T>
struct Hardmax {
  static constexpr int kSweeps = 1;
  static constexpr bool kHasSums = false;
  static constexpr unsigned int kReads[] = {2, 0};  // the input; nothing

  struct State {
    float max;
    std::int64_t index;
  };

  DMLOPS_INLINE static bool needs(int, const State&) { return true; }
  DMLOPS_INLINE static void begin(State& state, GroupTiles<T>&, std::int64_t) {
    state.max = -kInfinity;
    state.index = 0;
  }

  static void sweep(int, State& state, GroupTiles<T>& tiles, std::int64_t k, std::int64_t begin,
                    std::int64_t length) {
    if (state.max != state.max) return;  // the first NaN has been found
    const T* const x = tiles.row(1, k);
    f32x in_lanes = splat<f32x>(-kInfinity);
    i32x unordered = {};
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const f32x v = load_repeated(x, i, used);
      in_lanes = max(in_lanes, v);
      unordered |= v != v;
    });
    if (any_bit(bit_cast<u32x>(unordered), ~0u)) {
      state.max = __builtin_nanf("");
      state.index = begin + first(x, length, [](f32x v) DMLOPS_LAMBDA_INLINE { return v != v; });
      return;
    }
    const float largest =
        fold(in_lanes, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a < b ? b : a; });
    if (!(largest > state.max)) return;
    state.max = largest;
    state.index = begin + first(x, length, [largest](f32x v) DMLOPS_LAMBDA_INLINE {
                    return v == splat<f32x>(largest);
                  });
  }

  DMLOPS_INLINE static void end(int, State&, std::int64_t) {}
  DMLOPS_INLINE static void report(const State&, GroupTiles<T>&, std::int64_t) {}

  static void finish(const State& state, GroupTiles<T>&, std::int64_t, T* target,
                     std::int64_t begin, std::int64_t length) {
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      store_elements(target, i, used, splat<f32x>(0.0f));
    });
    const std::int64_t i = state.index - begin;
    if (i >= 0 && i < length) store_partial(target + i, splat<f32x>(1.0f), 1);
  }

 private:
  // Returns the index of the first element that passes; one must exist.
  template <class Test>
  DMLOPS_INLINE static std::int64_t first(const T* x, std::int64_t length, const Test& test) {
    constexpr std::int64_t lanes = kLanes<f32x>;
    std::int64_t i = 0;
    for (; i + lanes <= length; i += lanes) {
      if (any_bit(bit_cast<u32x>(test(load<f32x>(x + i))), ~0u)) break;
    }
    const i32x passes = test(load_elements(x, i, min(length - i, lanes)));
    alignas(kVectorBytes) std::int32_t each[lanes];
    store(each, passes);
    std::int64_t lane = 0;
    while (lane + 1 < lanes && each[lane] == 0) ++lane;
    return i + lane;
  }
};

template <class T>
void hardmax(const Reduction& reduction, const void*) {
  Hardmax<T> formula;
  reduce_groups<T>(reduction, formula);
}

}  // namespace dmlops::DMLOPS_TARGET
