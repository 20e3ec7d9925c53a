// hardmax: 1 at the first maximum of each group, and 0 elsewhere.
#pragma once

#include "kernels/blocks/row_elements.hpp"
#include "kernels/blocks/sweep_tiles.hpp"
#include "kernels/simd/fold.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/columns.hpp"
#include "kernels/softmax/rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Shorter groups are computed down columns, unless there are few groups.
constexpr std::int64_t kHardmaxAlongRows = 80;

template <class T>
void write_one(char* target) {
  store_partial(reinterpret_cast<T*>(target), splat<f32x>(1.0f), 1);
}

// Hardmax along rows: finds the index of the first maximum, or of the first NaN. Writes the ones
// alone where the output has zeros. A formula of sweep_tiles().
template <class T>
struct HardmaxRows {
  static constexpr int kSweeps = 1;
  static constexpr unsigned int kConstantInRuns = 0;
  static unsigned int reads(int s) { return s == 0 ? 2 : 0; }  // the sweep reads the input
  static bool activates() { return false; }

  struct State {
    float max;
    std::int64_t index;
  };
  static constexpr State kNone = {-kInfinity, 0};

  // Finds the first maximum of elements from `begin` on, given that of the elements before.
  static void find(State& state, const T* x, std::int64_t begin, std::int64_t length) {
    constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;  // elements with indices of 32 bits
    for (std::int64_t i = 0; i < length; i += kMaxLength)
      find_within(state, x + i, begin + i, min(length - i, kMaxLength));
  }

  // Writes the results of elements from `begin` on.
  static void write(const State& state, T* target, std::int64_t begin, std::int64_t length) {
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      store_elements(target, i, used, splat<f32x>(0.0f));
    });
    const std::int64_t i = state.index - begin;
    if (i >= 0 && i < length) write_one<T>(reinterpret_cast<char*>(target + i));
  }

  explicit HardmaxRows(const Reduction& groups)
      : groups_(groups), has_zeros_(groups.data[0] == nullptr), output_(element_loops(groups, 0)) {}

  void run() {
    GroupTiles tiles(groups_, sizeof(T));
    bool needed[kTileGroups];
    for (bool& group : needed) group = true;
    for (std::int64_t first = groups_.first, count; first < groups_.end; first += count) {
      count = tiles.select(first);
      for (std::int64_t k = 0; k < count; ++k) states_[k] = kNone;
      sweep_tiles(0, tiles, *this, states_, needed, count, 0, tiles.count());
      finish_tiles(tiles, *this, count, 0, tiles.count());
      report(tiles, count);
    }
  }

  static void sweep(int, State* states, GroupTiles& tiles, std::int64_t k, std::int64_t begin) {
    for (const TileRun& run : tiles)
      find(states[k], tiles.row<T>(1, k, run), begin + run.begin, run.length);
  }
  void finish(const GroupTiles& tiles, std::int64_t k, std::int64_t begin) const {
    if (has_zeros_) return;
    for (const TileRun& run : tiles)
      write(states_[k], tiles.row<T>(0, k, run), begin + run.begin, run.length);
  }

 private:
  // Writes to an output of zeros, at the end, since outputs may share the memory of inputs.
  void report(const GroupTiles& tiles, std::int64_t count) const {
    if (!has_zeros_) return;
    for (std::int64_t k = 0; k < count; ++k)
      write_one<T>(tiles.group_operand(kZeroedOutput, k) + output_.offset(states_[k].index));
  }
  static void find_within(State& state, const T* x, std::int64_t begin, std::int64_t length) {
    if (state.max != state.max) return;  // the first NaN has been found
    i32x unordered = {};
    State here = first_maximum(x, length, [&](f32x v) DMLOPS_LAMBDA_INLINE {
      unordered |= v != v;
      return v;
    });
    if (any_lane(unordered)) {
      here = first_maximum(x, length, [](f32x v) DMLOPS_LAMBDA_INLINE {
        return v != v ? splat<f32x>(1.0f) : splat<f32x>(0.0f);
      });
      here.max = __builtin_nanf("");
    }
    if (here.max > state.max || here.max != here.max) state = {here.max, begin + here.index};
  }

  // Finds the first maximum of key(x). Has no branch that depends on the elements, for which the
  // loads of the next group would wait.
  template <class Key>
  DMLOPS_INLINE static State first_maximum(const T* x, std::int64_t length, const Key& key) {
    f32x tops = splat<f32x>(-kInfinity);
    i32x at = {};  // the index of each lane's first maximum, less the lane
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const f32x v = key(load_repeated(x, i, used));
      const i32x greater = v > tops;
      tops = max(tops, v);
      at = greater ? splat<i32x>(static_cast<std::int32_t>(i)) : at;
    });
    const float largest = fold(tops, Maximum());
    const i32x none = splat<i32x>(INT32_MAX);
    const i32x indices = tops == splat<f32x>(largest) ? at + lane_indices() : none;
    return {largest, fold(indices, Minimum())};
  }

  const Reduction& groups_;
  const bool has_zeros_;
  const ElementLoops output_;
  State states_[kTileGroups];  // of the selected groups
};

// Hardmax down columns.
template <class T>
class HardmaxColumns {
 public:
  explicit HardmaxColumns(const Reduction& groups) : groups_(groups), block_(groups, 0) {}

  void run() {
    block_.for_each_selection([this] {
      find();
      groups_.data[0] != nullptr ? write() : write_ones();
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
        const std::int64_t column = block_.column(c);
        const f32x before = load<f32x>(tops_ + c);
        f32x top = before;
        i32x row = splat<i32x>(-1), unordered = {};
        // Only the maxima depend on one another; NaN is looked for afterwards.
        for (std::int64_t r = 0; r < rows; ++r) {
          const f32x v = load_columns<T>(x, r, column);
          unordered |= v != v;
          row = v > top ? splat<i32x>(static_cast<std::int32_t>(r)) : row;
          top = max(top, v);
        }
        unordered &= before == before;  // otherwise the first NaN has been found
        if (any_lane(unordered)) {
          top = unordered ? splat<f32x>(__builtin_nanf("")) : top;
          for (std::int64_t r = rows; r-- > 0;) {
            const f32x v = load_columns<T>(x, r, column);
            row = (v != v) & unordered ? splat<i32x>(static_cast<std::int32_t>(r)) : row;
          }
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
      // The rows of the maxima in block b; -1: none.
      alignas(kVectorBytes) std::int32_t rows_here[kSoftmaxColumns];
      for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        const i32x here = load<i32x>(blocks_ + c) == static_cast<std::int32_t>(b);
        store(rows_here + c, here ? load<i32x>(rows_ + c) : splat<i32x>(-1));
      });
      const auto write_rows = [&](char* target, std::int64_t pitch, std::int64_t first,
                                  std::int64_t rows) DMLOPS_LAMBDA_INLINE {
        for (std::int64_t r = first; r < first + rows; ++r, target += pitch) {
          for_each_vector(block_.columns(), [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
            const i32x is_max = load<i32x>(rows_here + c) == static_cast<std::int32_t>(r);
            store(reinterpret_cast<T*>(target) + block_.column(c),
                  is_max ? splat<f32x>(1.0f) : splat<f32x>(0.0f));
          });
        }
      };
      block_.store_results(b * kBlockRows, block_.rows(b), write_rows);
    }
  }

  // Writes to an output of zeros.
  void write_ones() {
    for (std::int64_t c = 0; c < block_.columns(); ++c) {
      const std::int64_t i = blocks_[c] * kBlockRows + rows_[c];
      write_one<T>(groups_.data[kZeroedOutput] + block_.output_offset(c, i));
    }
  }

  const Reduction& groups_;
  SoftmaxBlock<T> block_;
  alignas(kVectorBytes) float tops_[kSoftmaxColumns];
  // The positions of the first maxima: blocks, and rows within the blocks.
  alignas(kVectorBytes) std::int32_t blocks_[kSoftmaxColumns];
  alignas(kVectorBytes) std::int32_t rows_[kSoftmaxColumns];
};

}  // namespace dmlops::DMLOPS_TARGET
