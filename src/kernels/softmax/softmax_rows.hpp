// softmax of groups as dense rows.
#pragma once

#include "kernels/blocks/transform.hpp"
#include "kernels/softmax/rows.hpp"
#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

// Shorter groups are computed down columns, unless there are few groups.
constexpr std::int64_t kSoftmaxAlongRows = 32;

// Adds up the terms of a block.
template <class T, class Terms>
DMLOPS_INLINE void add_block(const T* x, std::int64_t length, const Terms& terms, double* lanes) {
  RowSum<T> sum;
  sum.clear();
  sum.add(length, [&](std::int64_t i, std::int64_t used)
                      DMLOPS_LAMBDA_INLINE { return terms(load_elements(x, i, used)).rounded(); });
  sum.store_to(lanes);
}

// Writes the quotients of the terms by their sum.
template <class T, class Terms>
DMLOPS_INLINE void finish_row(T* target, const T* x, std::int64_t length, const Terms& terms,
                              const TermSum& sum) {
  transform_row<f32x, 1>(target, x, length, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
    return Terms::result(terms(v), sum);
  });
}

template <class T>
class SoftmaxRows : RowTiles<T> {
  using Tiles = RowTiles<T>;

 public:
  explicit SoftmaxRows(const Reduction& groups) : Tiles(groups, GroupTiles::Access::single) {}

  void run() {
    const std::int64_t steps = round_up(tiles_.count(), kGroupStep);
    // At least two short groups, so that the latencies of their sums and reciprocals overlap.
    const std::int64_t batch = steps > kBatchElements ? 1 : max(kBatchElements / steps, 2);
    std::int64_t groups;
    for (std::int64_t first = reduction_.first; first < reduction_.end; first += groups) {
      groups = tiles_.select(first);
      if (tiles_.has_whole_groups() && steps <= kTileElements) {
        pitch_ = steps;
        for (std::int64_t k = 0; k < groups; k += batch) run<true>(k, min(k + batch, groups));
        tiles_.store(0, tiles_.count());
      } else {
        run<false>(0, groups);
      }
    }
  }

 private:
  using Tiles::for_each_row;
  using Tiles::reduction_;
  using Tiles::sums_;
  using Tiles::tiles_;

  static constexpr std::int64_t kBatchElements = 1024;  // terms that are kept in L1

  // Computes the groups [first, end) of the tile. kWhole: a tile holds whole groups, so that terms
  // are kept; otherwise they are computed twice.
  template <bool kWhole>
  void run(std::int64_t first, std::int64_t end) {
    if (plain_) {
      seen_ = LargestAbs{};
      for_each_row(first, end,
                   [&](std::int64_t k, const T* x, std::int64_t begin,
                       std::int64_t length) DMLOPS_LAMBDA_INLINE {
                     add_terms<kWhole>(k, k - first, x, begin, length, PlainGroupTerms<T>(), seen_);
                   });
      plain_ =
          invert(first, end) &&
          finish_plain<T>(fold(seen_.largest, Maximum()), tiles_.count(), [&](auto terms) {
            finish<kWhole>(first, end, [=](std::int64_t) DMLOPS_LAMBDA_INLINE { return terms; });
          });
      if (plain_) return;
    }
    Tiles::find_maxima(first, end, tops_);
    NothingSeen nothing;
    for_each_row(first, end,
                 [&](std::int64_t k, const T* x, std::int64_t begin, std::int64_t length) {
                   add_terms<kWhole>(k, k - first, x, begin, length,
                                     GroupTerms<T>(splat<f32x>(tops_[k - first])), nothing);
                 });
    invert(first, end);
    finish<kWhole>(first, end,
                   [&](std::int64_t k) { return GroupTerms<T>(splat<f32x>(tops_[k - first])); });
  }

  template <bool kKeep, class Terms, class Seen>
  DMLOPS_INLINE void add_terms(std::int64_t k, std::int64_t row, const T* x, std::int64_t begin,
                               std::int64_t length, const Terms& terms, Seen& seen_before) {
    float* const powers = powers_ + row * pitch_;
    float* const remainders = remainders_ + row * pitch_;
    Seen seen = seen_before;
    if (begin == 0) sums_[k].clear();
    sums_[k].add(length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
      const f32x v = load_elements(x, i, used);
      if constexpr (std::is_same_v<Seen, LargestAbs>) seen += v;
      const auto term = terms(v);
      if (kKeep) term.store_to(powers + i, remainders + i);
      return term.rounded();
    });
    seen_before = seen;
  }

  // Computes the reciprocals of the sums of the groups [first, end).
  bool invert(std::int64_t first, std::int64_t end) {
    term_sums_.clear_past(end - first);
    Tiles::fold_sums(first, end, term_sums_.sum);
    return term_sums_.compute(end - first, !plain_);
  }

  template <bool kWhole, class MakeTerms>
  DMLOPS_INLINE void finish(std::int64_t first, std::int64_t end, const MakeTerms& make_terms) {
    using Terms = decltype(make_terms(first));
    if constexpr (kWhole) {
      for (std::int64_t k = first; k < end; ++k) {
        const float* const powers = powers_ + (k - first) * pitch_;
        const float* const remainders = remainders_ + (k - first) * pitch_;
        T* const target = tiles_.template row<T>(0, k);
        const TermSum sum = term_sums_.of_group(k - first);
        for_each_vector_of_row(tiles_.count(),
                               [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                                 SoftmaxTerm<T> term;
                                 term.load_from(powers + i, remainders + i);
                                 store_elements(target, i, used, Terms::result(term, sum));
                               });
      }
    } else {
      tiles_.for_each_tile([&](std::int64_t begin, std::int64_t length) {
        tiles_.load(Tiles::kOperands, begin, length);
        for (std::int64_t k = first; k < end; ++k)
          finish_row(tiles_.template row<T>(0, k), tiles_.template row<T>(1, k), length,
                     make_terms(k), term_sums_.of_group(k - first));
        tiles_.store(begin, length);
      });
    }
  }

  bool plain_ = true;  // until an element is beyond PlainGroupTerms::kLargest
  std::int64_t pitch_ = 0;
  LargestAbs seen_;
  alignas(kVectorBytes) float tops_[kTileGroups];
  TermSums<T, kTileGroups> term_sums_;
  alignas(kVectorBytes) float powers_[kTileElements], remainders_[kTileElements];
};

}  // namespace dmlops::DMLOPS_TARGET
