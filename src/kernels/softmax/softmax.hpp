// softmax: exp(x - max) / sum(exp(x - max)) over each group.
#pragma once

#include "kernels/blocks/group_tiles.hpp"
#include "kernels/simd/fold.hpp"
#include "kernels/softmax/hardmax.hpp"
#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

// Softmax of groups, as dense rows.
//
// The error of a float32 result is at most 1.93 ulp. In units of 2^-24, relative to the exact
// result: 0.18 of its term, 1.18 of the sum of the terms, each rounded to float32 (1), and 0.09 of
// the roundings within SoftmaxTerm::times(); such a unit is less than an ulp. The last operation
// adds 0.5 ulp. A subnormal result is rounded a second time, but the other errors are at most half
// as many of its ulp. float16 results: 0.02 ulp, for 2 * 2.7e-6 of the terms and 2^-18 of the
// float32 sums, beyond their rounding.
template <class T>
class Softmax {
 public:
  explicit Softmax(const Reduction& reduction) : reduction_(reduction), tiles_(reduction) {}

  void run() {
    const std::int64_t steps = (tiles_.count() + kGroupStep - 1) / kGroupStep * kGroupStep;
    const std::int64_t batch = steps < kBatchElements ? kBatchElements / steps : 1;
    std::int64_t groups;
    for (std::int64_t first = reduction_.first; first < reduction_.end; first += groups) {
      groups = tiles_.select(first, reduction_.end);
      if (tiles_.has_whole_groups()) {
        pitch_ = steps;
        tiles_.load(kInput, 0, tiles_.count());
        for (std::int64_t k = 0; k < groups; k += batch) run<true>(k, min(k + batch, groups));
        tiles_.store(0, tiles_.count());
      } else {
        run<false>(0, groups);
      }
    }
  }

 private:
  static constexpr unsigned int kInput = 2;             // the bit of the input in GroupTiles
  static constexpr std::int64_t kBatchElements = 1024;  // terms that are kept in L1

  // Computes the groups [first, end) of the tile. kWhole: a tile holds whole groups, so that terms
  // are kept; otherwise they are computed twice.
  template <bool kWhole>
  void run(std::int64_t first, std::int64_t end) {
    if (plain_) {
      for (std::int64_t k = first; k < end; ++k) sums_[k].clear();
      largest_ = f32x{};
      for_each_row<kWhole>(
          first, end, [&](std::int64_t k, const T* x, std::int64_t length) DMLOPS_LAMBDA_INLINE {
            add_terms<kWhole, true>(k, k - first, x, length, PlainGroupTerms<T>());
          });
      invert(first, end);
      plain_ = plain_ && fold(largest_, [](auto a, auto b) DMLOPS_LAMBDA_INLINE {
                           return a < b ? b : a;
                         }) <= PlainGroupTerms<T>::kLargest;
      if (plain_) {
        finish<kWhole>(
            first, end, [](std::int64_t) DMLOPS_LAMBDA_INLINE { return PlainGroupTerms<T>(); },
            [](f32x y) DMLOPS_LAMBDA_INLINE { return y; });
        return;
      }
    }
    for (std::int64_t k = first; k < end; ++k) {
      sums_[k].clear();
      tops_[k] = -kInfinity;
    }
    for_each_row<kWhole>(first, end, [&](std::int64_t k, const T* x, std::int64_t length) {
      f32x largest = splat<f32x>(tops_[k]);
      for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
        largest = max(largest, load_repeated(x, i, used));
      });
      tops_[k] = fold(largest, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a < b ? b : a; });
    });
    for_each_row<kWhole>(first, end, [&](std::int64_t k, const T* x, std::int64_t length) {
      add_terms<kWhole, false>(k, k - first, x, length, GroupTerms<T>(tops_[k]));
    });
    invert(first, end);
    finish<kWhole>(
        first, end, [&](std::int64_t k) { return GroupTerms<T>(tops_[k]); },
        [](f32x y) DMLOPS_LAMBDA_INLINE {
          return canonical_nan(SoftmaxTerm<T>::kScale == 0 ? y : y * 0x1p-64f);
        });
  }

  // Calls visit(k, row, length) for the rows of the groups, tile by tile.
  template <bool kWhole, class Visit>
  DMLOPS_INLINE void for_each_row(std::int64_t first, std::int64_t end, const Visit& visit) {
    if constexpr (kWhole) {
      for (std::int64_t k = first; k < end; ++k) visit(k, tiles_.row(1, k), tiles_.count());
    } else {
      tiles_.for_each_tile([&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
        tiles_.load(kInput, begin, length);
        for (std::int64_t k = first; k < end; ++k) visit(k, tiles_.row(1, k), length);
      });
    }
  }

  template <bool kKeep, bool kRange, class Terms>
  DMLOPS_INLINE void add_terms(std::int64_t k, std::int64_t place, const T* x, std::int64_t length,
                               const Terms& terms) {
    float* const powers = powers_ + place * pitch_;
    float* const remainders = remainders_ + place * pitch_;
    f32x largest = largest_;
    sums_[k].add(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const f32x v = load_elements(x, i, used);
      if (kRange) largest = max_abs(largest, v);
      const auto term = terms(v);
      if (kKeep) term.store_to(powers + i, remainders + i);
      return term.rounded();
    });
    largest_ = largest;
  }

  // The inverses of the sums, as unevaluated sums of two float32, times 2^kScale if the terms are.
  void invert(std::int64_t first, std::int64_t end) {
    constexpr std::int64_t lanes = kLanes<f64x>;
    for (std::int64_t k = first; k < end; k += lanes) {
      f64x rows[lanes];
      for (std::int64_t i = 0; i < lanes; ++i) rows[i] = halved(sums_[min(k + i, end - 1)].lanes());
      const f64x sums = fold_rows<lanes / 2>(rows, Addition());
      const f64x inverses = (plain_ ? 1.0 : kInverseScale) / sums;
      alignas(kVectorBytes) float high[lanes], low[lanes];
      const f32half rounded = to_float(inverses);
      std::memcpy(high, &rounded, sizeof rounded);
      const f32half rest = to_float(inverses - to_double(high));
      std::memcpy(low, &rest, sizeof rest);
      for (std::int64_t i = 0; i < min(lanes, end - k); ++i) {
        high_[k + i] = high[i];
        low_[k + i] = low[i];
        plain_ = plain_ && high[i] == high[i];
      }
    }
  }

  // Adds the lanes down to one vector.
  DMLOPS_INLINE static f64x halved(const double* lanes) {
    f64x sums[kSumLanes / kLanes<f64x>];
    int vectors = kSumLanes / kLanes<f64x>;
    for (int i = 0; i < vectors; ++i) sums[i] = load<f64x>(lanes + i * kLanes<f64x>);
    for (vectors /= 2; vectors > 0; vectors /= 2) {
      for (int i = 0; i < vectors; ++i) sums[i] += sums[i + vectors];
    }
    return sums[0];
  }

  template <bool kWhole, class MakeTerms, class Last>
  DMLOPS_INLINE void finish(std::int64_t first, std::int64_t end, const MakeTerms& make_terms,
                            const Last& last) {
    if constexpr (kWhole) {
      for (std::int64_t k = first; k < end; ++k) {
        const float* const powers = powers_ + (k - first) * pitch_;
        const float* const remainders = remainders_ + (k - first) * pitch_;
        scale(k, tiles_.target(k, 0), tiles_.count(), last,
              [=](std::int64_t i, std::int64_t) DMLOPS_LAMBDA_INLINE {
                SoftmaxTerm<T> term;
                term.load_from(powers + i, remainders + i);
                return term;
              });
      }
    } else {
      tiles_.for_each_tile([&](std::int64_t begin, std::int64_t length) {
        tiles_.load(kInput, begin, length);
        for (std::int64_t k = first; k < end; ++k) {
          const T* const x = tiles_.row(1, k);
          const auto terms = make_terms(k);
          scale(k, tiles_.target(k, begin), length, last,
                [&](std::int64_t i, std::int64_t used)
                    DMLOPS_LAMBDA_INLINE { return terms(load_elements(x, i, used)); });
        }
        tiles_.store(begin, length);
      });
    }
  }

  // Writes the products of terms and the inverse of their sum.
  template <class Last, class Terms>
  DMLOPS_INLINE void scale(std::int64_t k, T* target, std::int64_t length, const Last& last,
                           const Terms& terms) const {
    const f32x high = splat<f32x>(high_[k]), low = splat<f32x>(low_[k]);
    for_each_vector_of_row(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      store_elements(target, i, used, last(terms(i, used).times(high, low)));
    });
  }

  static constexpr double kInverseScale = SoftmaxTerm<T>::kScale == 0 ? 1.0 : 0x1p64;

  const Reduction& reduction_;
  GroupTiles<T> tiles_;
  bool plain_ = true;  // until an element is beyond PlainGroupTerms::kLargest
  std::int64_t pitch_ = 0;
  f32x largest_ = {};  // of |x|, except NaN, in lanes
  TermSum<T> sums_[kTileGroups];
  float tops_[kTileGroups], high_[kTileGroups], low_[kTileGroups];
  alignas(kVectorBytes) float powers_[kTileElements], remainders_[kTileElements];
};

template <class T>
void softmax(const Reduction& reduction, const void*) {
  Softmax<T>(reduction).run();
}

}  // namespace dmlops::DMLOPS_TARGET
