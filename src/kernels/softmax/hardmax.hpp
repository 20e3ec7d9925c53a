// hardmax: 1 at the first maximum of each group, and 0 elsewhere.
#pragma once

#include "kernels/blocks/group_sum.hpp"
#include "kernels/blocks/reduce_groups.hpp"
#include "kernels/simd/fold.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Shorter groups are computed down columns, unless there are few groups.
constexpr std::int64_t kHardmaxAlongRows = 80;

// The formula of hardmax along rows, for reduce_groups(): finds the index of the first maximum, or
// of the first NaN.
template <class T>
struct Hardmax {
  static constexpr int kSweeps = 1;
  static constexpr bool kHasSums = false;
  static unsigned int reads(int s) { return s == 0 ? 2 : 0; }  // the sweep reads the input

  struct State {
    float max;
    std::int64_t index;
  };
  static constexpr State kNone = {-kInfinity, 0};

  // Finds the first maximum of elements from `begin` on, given that of the elements before.
  static void find(State& state, const T* x, std::int64_t begin, std::int64_t length) {
    if (state.max != state.max) return;  // the first NaN has been found
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
    const float largest = fold(in_lanes, Maximum());
    if (!(largest > state.max)) return;
    state.max = largest;
    state.index = begin + first(x, length, [largest](f32x v) DMLOPS_LAMBDA_INLINE {
                    return v == splat<f32x>(largest);
                  });
  }

  // Writes the results of elements from `begin` on.
  static void write(const State& state, T* target, std::int64_t begin, std::int64_t length) {
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      store_elements(target, i, used, splat<f32x>(0.0f));
    });
    const std::int64_t i = state.index - begin;
    if (i >= 0 && i < length) store_partial(target + i, splat<f32x>(1.0f), 1);
  }

  void begin(State* states, const GroupTiles&, std::int64_t count) {
    states_ = states;
    for (std::int64_t k = 0; k < count; ++k) states[k] = kNone;
  }
  static bool needs(int, std::int64_t) { return true; }
  static void sweep(int, State* states, GroupTiles& tiles, std::int64_t k, std::int64_t begin) {
    tiles.for_each_run([&](const TileRun& run) DMLOPS_LAMBDA_INLINE {
      find(states[k], tiles.row<T>(1, k, run), begin + run.begin, run.length);
    });
  }
  static void end(int, State*, std::int64_t, std::int64_t) {}
  static void prepare(std::int64_t) {}
  void finish(const GroupTiles& tiles, std::int64_t k, std::int64_t begin) const {
    tiles.for_each_run([&](const TileRun& run) DMLOPS_LAMBDA_INLINE {
      write(states_[k], tiles.row<T>(0, k, run), begin + run.begin, run.length);
    });
  }
  static void report(const GroupTiles&, std::int64_t) {}

 private:
  // Returns the index of the first element for which `test` is true; such an element must exist.
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

  const State* states_ = nullptr;  // of the selected groups
};

// Hardmax down columns.
template <class T>
class HardmaxColumns {
 public:
  explicit HardmaxColumns(const Reduction& groups) : block_(groups) {}

  void run() {
    block_.for_each_selection([this](std::int64_t, std::int64_t) {
      find();
      write();
    });
  }

 private:
  void find() {
    for_each_vector(block_.columns(), [this](std::int64_t c) {
      store(tops_ + c, splat<f32x>(-kInfinity));
      store(rows_ + c, i32x{});
      store(blocks_ + c, i32x{});
    });
    for (std::int64_t b = 0; b < block_.blocks(); ++b) {
      const auto x = block_.view(b);
      const std::int64_t rows = block_.rows(b);
      for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        f32x top = load<f32x>(tops_ + c);
        i32x row = splat<i32x>(-1);
        for (std::int64_t r = 0; r < rows; ++r) {
          const f32x v = load_columns<T>(x, r, c);
          const i32x is_first = (v > top) | ((v != v) & (top == top));
          top = is_first ? v : top;
          row = is_first ? splat<i32x>(static_cast<std::int32_t>(r)) : row;
        }
        const i32x found = row >= 0;
        store(tops_ + c, top);
        store(rows_ + c, found ? row : load<i32x>(rows_ + c));
        store(blocks_ + c,
              found ? splat<i32x>(static_cast<std::int32_t>(b)) : load<i32x>(blocks_ + c));
      });
    }
  }

  void write() {
    for (std::int64_t b = 0; b < block_.blocks(); ++b) {
      alignas(kVectorBytes)
          std::int32_t rows_here[kSoftmaxColumns];  // of the maxima in block b; -1: none
      for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const i32x here = load<i32x>(blocks_ + c) == static_cast<std::int32_t>(b);
        store(rows_here + c, here ? load<i32x>(rows_ + c) : splat<i32x>(-1));
      });
      const auto write_rows = [&](char* target, std::int64_t pitch, std::int64_t first,
                                  std::int64_t rows) DMLOPS_LAMBDA_INLINE {
        for (std::int64_t r = first; r < first + rows; ++r, target += pitch) {
          for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
            const i32x is_max = load<i32x>(rows_here + c) == static_cast<std::int32_t>(r);
            store(reinterpret_cast<T*>(target) + c, is_max ? splat<f32x>(1.0f) : splat<f32x>(0.0f));
          });
        }
      };
      block_.store_results(b * kBlockRows, block_.rows(b), write_rows);
    }
  }

  SoftmaxBlock<T> block_;
  alignas(kVectorBytes) float tops_[kSoftmaxColumns];
  // The positions of the first maxima: blocks, and rows within the blocks.
  alignas(kVectorBytes) std::int32_t blocks_[kSoftmaxColumns];
  alignas(kVectorBytes) std::int32_t rows_[kSoftmaxColumns];
};

}  // namespace dmlops::DMLOPS_TARGET
