// Groups of the softmax family along rows: when they are, and their sums.
#pragma once

#include "kernels/blocks/group_tiles.hpp"
#include "kernels/blocks/row_elements.hpp"
#include "kernels/simd/fold.hpp"
#include "kernels/simd/math.hpp"
#include "kernels/softmax/lane_sums.hpp"

namespace dmlops::DMLOPS_TARGET {

// True if groups are computed along rows. `along_rows` is the minimum length of groups that are
// contiguous along a dimension, in the output too if it is present.
inline bool fills_rows(const Reduction& groups, std::int64_t along_rows) {
  const ElementLoops in = element_loops(groups, 1), out = element_loops(groups, 0);
  // Elements of a group share cache lines, and fill the lanes of a sum.
  const auto share_lines = [](const ElementLoops& loops) {
    for (int d = 0; d < loops.rank; ++d) {
      if (abs(loops.strides[d]) <= kNearBytes && loops.sizes[d] >= kSumLanes) return true;
    }
    return false;
  };
  const bool contiguous = share_lines(in) && (groups.data[0] == nullptr || share_lines(out));
  return leave_lanes_empty(groups) || (contiguous && in.count() >= along_rows);
}

// Loads a vector of a row's elements from i on; lanes past the end get `filler`.
template <class T>
DMLOPS_INLINE f32x load_filled(const T* x, std::int64_t i, std::int64_t used, T filler) {
  return used == kFloatLanes ? load<f32x>(x + i) : load_partial<f32x>(x + i, used, filler);
}
// Lanes past the end repeat an element.
template <class T>
DMLOPS_INLINE f32x load_repeated(const T* x, std::int64_t i, std::int64_t used) {
  return load_filled(x, i, used, load_element<T>(reinterpret_cast<const char*>(x + i)));
}

// The sum of a group's terms. clear() must precede the first one: a constructor would take time for
// unused sums of tiles.
template <class T>
class RowSum {
 public:
  using Lane = typename LaneSums<T>::Lane;

  void clear() {
    steps_ = 0;
    has_blocks_ = false;
  }

  // Adds elements of the group: a whole number of steps of 16, or the last ones. `terms(i, used)`
  // returns the terms of a vector of elements from i on, of which `used` exist.
  template <class Terms>
  DMLOPS_INLINE void add(std::int64_t count, const Terms& terms) {
    for (std::int64_t begin = 0; begin < count;) {
      if (steps_ == kSteps) end_block();
      const std::int64_t length = min(count - begin, (kSteps - steps_) * kSumLanes);
      add_steps(begin, length, terms);
      steps_ += ceil_div(length, kSumLanes);
      begin += length;
    }
  }

  // Returns the lanes of the sum, added down to one vector, in float64 if there are several blocks.
  // No term may be added afterwards.
  DMLOPS_INLINE Vec<Lane> folded_block() const { return folded<Vec<Lane>>(lanes_); }
  DMLOPS_INLINE f64x folded_blocks() {
    end_block();
    return folded<f64x>(blocks_);
  }
  // Stores the lanes of all blocks, as above.
  void store_to(double* lanes) {
    end_block();
    std::memcpy(lanes, blocks_, sizeof blocks_);
  }

 private:
  static constexpr std::int64_t kSteps = kSumBlock / kSumLanes;
  // Computes several terms before adding them if there are enough registers, which exposes more
  // instruction-level parallelism than out-of-order execution finds.
  static constexpr int kTogether = kVectorBytes == 64 && std::is_same_v<T, float> ? 4 : 1;

  template <class V, class Number>
  DMLOPS_INLINE static V folded(const Number* lanes) {
    V sums[kSumLanes / kLanes<V>];
#pragma GCC unroll 16
    for (int i = 0; i < kSumLanes / kLanes<V>; ++i) sums[i] = load<V>(lanes + i * kLanes<V>);
    return add_halves(sums);
  }

  template <class Terms>
  DMLOPS_INLINE void add_steps(std::int64_t begin, std::int64_t count, const Terms& terms) {
    for (std::int64_t lane = 0; lane < kSumLanes; lane += kFloatLanes) {
      LaneSums<T> sums = {};
      if (steps_ > 0) sums = LaneSums<T>::from(lanes_ + lane);
      std::int64_t i = lane;
      for (; i + (kTogether - 1) * kSumLanes + kFloatLanes <= count; i += kTogether * kSumLanes) {
        decltype(terms(begin, kFloatLanes)) several[kTogether];
#pragma GCC unroll 16
        for (int k = 0; k < kTogether; ++k)
          several[k] = terms(begin + i + k * kSumLanes, kFloatLanes);
#pragma GCC unroll 16
        for (const auto& term : several) sums += term;
      }
      for (; i + kFloatLanes <= count; i += kSumLanes) sums += terms(begin + i, kFloatLanes);
      if (i < count) {
        const i32x used = lane_indices() < static_cast<std::int32_t>(count - i);
        sums += masked(terms(begin + i, count - i), used);
      }
      sums.store_to(lanes_ + lane);
    }
  }

  DMLOPS_INLINE void end_block() {
#pragma GCC unroll 16
    for (int j = 0; j < kSumLanes; j += kLanes<f64x>) {
      const f64x ended = to_double(lanes_ + j);
      store(blocks_ + j, has_blocks_ ? load<f64x>(blocks_ + j) + ended : ended);
    }
    steps_ = 0;
    has_blocks_ = true;
  }

  alignas(kVectorBytes) Lane lanes_[kSumLanes];     // of the current block, unless steps_ is 0
  alignas(kVectorBytes) double blocks_[kSumLanes];  // of the previous blocks, if any
  std::int64_t steps_;
  bool has_blocks_;
};

// Groups as dense rows in tiles, and a sum for each group.
template <class T>
class RowTiles {
 protected:
  using Sum = typename RowSum<T>::Lane;
  static constexpr unsigned int kOperands = 3;  // the output and the input, as bits

  RowTiles(const Reduction& reduction, GroupTiles::Access access)
      : reduction_(reduction), tiles_(reduction, sizeof(T), access, 2) {}

  // Calls visit(k, row, begin, length) for the elements from `begin` on of the groups [first, end),
  // tile by tile.
  template <class Visit>
  DMLOPS_INLINE void for_each_row(std::int64_t first, std::int64_t end, const Visit& visit) {
    tiles_.for_each_tile([&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
      tiles_.load(kOperands, begin, length);
      for (std::int64_t k = first; k < end; ++k) visit(k, tiles_.row<T>(1, k), begin, length);
    });
  }

  // Finds the maxima of the groups [first, end), as target[0], ...; ignores NaN.
  void find_maxima(std::int64_t first, std::int64_t end, float* target) {
    f32x largest[kTileGroups];
    for_each_row(first, end,
                 [&](std::int64_t k, const T* x, std::int64_t begin, std::int64_t length)
                     DMLOPS_LAMBDA_INLINE {
                       f32x here = begin == 0 ? splat<f32x>(-kInfinity) : largest[k - first];
                       for_each_vector_of_row(
                           length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                             here = max(here, load_repeated(x, i, used));
                           });
                       largest[k - first] = here;
                     });
    fold_groups(target, end - first, Maximum(),
                [&](std::int64_t k) DMLOPS_LAMBDA_INLINE { return largest[k]; });
  }

  // Folds the sums of the groups [first, end) to target[0], ...
  void fold_sums(std::int64_t first, std::int64_t end, Sum* target) {
    const auto fold = [&](const auto& folded) DMLOPS_LAMBDA_INLINE {
      fold_groups(target, end - first, Addition(),
                  [&](std::int64_t k) DMLOPS_LAMBDA_INLINE { return folded(sums_[first + k]); });
    };
    if (tiles_.count() <= kSumBlock) {
      fold([](RowSum<T>& sum) DMLOPS_LAMBDA_INLINE { return sum.folded_block(); });
    } else {
      fold([](RowSum<T>& sum) DMLOPS_LAMBDA_INLINE { return sum.folded_blocks(); });
    }
  }

  const Reduction& reduction_;
  GroupTiles tiles_;
  RowSum<T> sums_[kTileGroups];
};

}  // namespace dmlops::DMLOPS_TARGET
