// log_softmax along rows.
#pragma once

#include "kernels/blocks/transform.hpp"
#include "kernels/softmax/log_softmax_group.hpp"
#include "kernels/softmax/rows.hpp"

namespace dmlops::DMLOPS_TARGET {

// Adds the plain terms of elements to the sum.
template <class T>
DMLOPS_INLINE void add_plain_terms(RowSum<T>& sum, const T* x, std::int64_t length,
                                   Range<T>& seen) {
  const PlainTerms<T> terms;
  Range<T> range = seen;
  sum.add(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
    return terms.term(load_repeated(x, i, used), range);
  });
  seen = range;
}

// Adds the terms of elements to the sum excluding the maxima. Lanes past the end hold the maximum,
// which adds no term.
template <class T>
DMLOPS_INLINE void add_terms_excluding_max(RowSum<T>& sum, const T* x, std::int64_t length,
                                           const TermsExcludingMax<T>& terms, NonMaxCount& seen) {
  const T filler = terms.filler();
  NonMaxCount counter = seen;
  sum.add(length, [=, &counter](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
    return terms.term(load_filled(x, i, used, filler), counter);
  });
  seen = counter;
}

// Writes the results of elements; `smallest` is that of the group.
template <class T>
DMLOPS_INLINE void finish_row(T* y, const T* x, std::int64_t count, float smallest, float high,
                              float low) {
  Difference<T> difference(splat<f32x>(high), splat<f32x>(low));
  if (Difference<T>::is_in_range(smallest, high)) {
    transform_row<f32x, 2>(y, x, count, [difference](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
      return difference.template of<true>(v);
    });
  } else {
    transform_row<f32x, 2>(y, x, count, [difference](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
      return difference.of(v);
    });
  }
}

template <class T>
class LogSoftmaxRows : RowTiles<T>, GroupBatch<LogSoftmaxRows<T>, T, kTileGroups> {
  using Tiles = RowTiles<T>;
  using Batch = GroupBatch<LogSoftmaxRows<T>, T, kTileGroups>;
  friend Batch;

 public:
  explicit LogSoftmaxRows(const Reduction& groups) : Tiles(groups, GroupTiles::Access::whole) {}

  void run() {
    for (std::int64_t first = reduction_.first; first < reduction_.end; first += groups_) {
      groups_ = tiles_.select(first);
      Batch::run(groups_);
    }
  }

 private:
  using Batch::log_sum_exp_;
  using Tiles::fold_sums;
  using Tiles::for_each_row;
  using Tiles::reduction_;
  using Tiles::sums_;
  using Tiles::tiles_;

  std::int64_t elements() const { return tiles_.count(); }

  void find_maxima() { Tiles::find_maxima(0, groups_, log_sum_exp_.largest); }

  void add_plain() {
    for_each_row(0, groups_,
                 [&](std::int64_t k, const T* x, std::int64_t begin, std::int64_t length)
                     DMLOPS_LAMBDA_INLINE {
                       Range<T> seen;
                       if (begin == 0) {
                         sums_[k].clear();
                       } else {
                         seen = {{largest_[k]}, smallest_[k]};
                       }
                       add_plain_terms(sums_[k], x, length, seen);
                       largest_[k] = seen.largest;
                       smallest_[k] = seen.smallest;
                     });
    fold_sums(0, groups_, log_sum_exp_.plain_sum);
    fold_groups(log_sum_exp_.largest, groups_, Maximum(),
                [&](std::int64_t k) DMLOPS_LAMBDA_INLINE { return largest_[k]; });
    fold_groups(minima_, groups_, Minimum(),
                [&](std::int64_t k) DMLOPS_LAMBDA_INLINE { return smallest_[k]; });
  }

  void add_excluding_max() {
    for_each_row(0, groups_,
                 [&](std::int64_t k, const T* x, std::int64_t begin, std::int64_t length)
                     DMLOPS_LAMBDA_INLINE {
                       NonMaxCount seen;
                       if (begin == 0) {
                         sums_[k].clear();
                       } else {
                         seen.count = below_max_[k];
                       }
                       if (!(log_sum_exp_.sum_excluding_max[k] >= 0)) {  // else that suffices
                         const TermsExcludingMax<T> terms(splat<f32x>(log_sum_exp_.largest[k]));
                         add_terms_excluding_max(sums_[k], x, length, terms, seen);
                       }
                       below_max_[k] = seen.count;
                     });
    fold_sums(0, groups_, log_sum_exp_.sum_excluding_maxima);
    // In float64, since a group may have more than 2^32 elements.
    alignas(kVectorBytes) double below_max[kTileGroups];
    fold_groups(below_max, groups_, Addition(), [&](std::int64_t k) DMLOPS_LAMBDA_INLINE {
      const Doubles counts = to_double(below_max_[k]);
      return counts.lower + counts.upper;
    });
    for (std::int64_t k = 0; k < groups_; ++k) {
      const double maxima = static_cast<double>(tiles_.count()) - below_max[k];
      log_sum_exp_.max_count[k] = static_cast<float>(maxima);
    }
  }

  void finish() {
    static_assert(kPlainFirst<float> == 0);  // add_plain() sets minima_, which float32 alone reads
    tiles_.for_each_tile([&](std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
      tiles_.load(Tiles::kOperands, begin, length);
      for (std::int64_t k = 0; k < groups_; ++k)
        finish_row(tiles_.template row<T>(0, k), tiles_.template row<T>(1, k), length, minima_[k],
                   log_sum_exp_.high[k], log_sum_exp_.low[k]);
      tiles_.store(begin, length);
    });
  }

  std::int64_t groups_ = 0;
  // Of each group, by lanes.
  f32x largest_[kTileGroups], smallest_[kTileGroups];
  i32x below_max_[kTileGroups];
  alignas(kVectorBytes) float minima_[kTileGroups];
};

}  // namespace dmlops::DMLOPS_TARGET
