// Sums of groups down columns, in the order of GroupSum.
#pragma once

#include "kernels/blocks/column_vectors.hpp"
#include "kernels/simd/doubles.hpp"

namespace dmlops::DMLOPS_TARGET {

// Rows are read nearly in the order of memory: some lanes of all groups, up to a maximum, whose
// sums are kept.
constexpr std::int64_t kLanesAtOnce = 4, kSumColumns = 128;

// kSums sums of each of up to kSumColumns groups. A V has a sum of each group of a vector: Doubles,
// or f32x within a block of the sum.
template <int kSums, class V>
class MomentColumnSums {
 public:
  // For each kRows rows, calls load(begin). Then, for some lanes at a time and each vector of
  // columns for which is_needed(c): add = make_terms(c), and add(r, sums) for each row of these
  // lanes, which adds the row's terms to the sums from kFirst on.
  template <std::int64_t kRows, int kFirst, class IsNeeded, class Load, class MakeTerms>
  DMLOPS_INLINE void add_up(std::int64_t count, std::int64_t columns, const RowLanes& lanes,
                            const IsNeeded& is_needed, const Load& load,
                            const MakeTerms& make_terms) {
    constexpr int kTogether = vectors_together((kSums - kFirst) * int{sizeof(V)} / kVectorBytes);
    const bool whole = lanes.are_all();
    if (count <= kRows && whole) {  // lanes are folded without being stored
      load(0);
      return for_each_several<vectors_together(2 * (kSums - kFirst))>(
          columns, is_needed, [&](std::int64_t c, auto indices) DMLOPS_LAMBDA_INLINE {
            fold_rows<kFirst>(count, c, make_terms, indices);
          });
    }
    for (std::int64_t begin = 0; begin < count; begin += kRows) {
      load(begin);
      const std::int64_t rows = min(kRows, count - begin), in_block = begin % kSumBlock;
      const std::int64_t end = min(min(rows, lanes.end), kMomentLanes);
      for (std::int64_t first = lanes.first; first < end; first += kLanesAtOnce) {
        const LanesOfRows some = {first, min(first + kLanesAtOnce, end), rows, in_block != 0};
        for_each_several<kTogether>(columns, is_needed,
                                    [&](std::int64_t c, auto indices) DMLOPS_LAMBDA_INLINE {
                                      add_lanes<kFirst>(some, c, make_terms, indices);
                                    });
      }
      const bool last = begin + rows == count;
      if (!last && in_block + rows < kSumBlock) continue;
      const std::int64_t used = min(in_block + rows, kMomentLanes);
      for_each_vector(columns, [&](std::int64_t c) DMLOPS_LAMBDA_INLINE {
        if (!is_needed(c)) return;
        const std::int64_t v = c / kFloatLanes;
        if (whole && count <= kSumBlock) return fold_lanes<kFirst>(lanes_[v], used, totals_[v]);
        end_block<kFirst>(v, lanes.first, min(used, lanes.end), begin < kSumBlock);
        if (whole && last) fold_lanes<kFirst>(blocks_[v], kMomentLanes, totals_[v]);
      });
    }
  }

  // Shares the lanes of a sweep's sums with the shards that compute the other lanes.
  void share(void* sums, int sweep) {
    static_assert(kPartGroups <= kSumColumns && kPartGroups % kFloatLanes == 0);
    blocks_ = static_cast<Blocks>(sums) + sweep * (kPartGroups / kFloatLanes);
  }
  template <int kFirst, class IsNeeded>
  void fold_shared(std::int64_t count, std::int64_t columns, const IsNeeded& is_needed) {
    for_each_vector(columns, [&](std::int64_t c) {
      if (!is_needed(c)) return;
      fold_lanes<kFirst>(blocks_[c / kFloatLanes], min(count, kMomentLanes),
                         totals_[c / kFloatLanes]);
    });
  }

  // The totals of the vector of columns at c.
  DMLOPS_INLINE const Doubles* totals(std::int64_t c) const { return totals_[c / kFloatLanes]; }

 private:
  static constexpr int kVectors = kSumColumns / kFloatLanes;
  using Blocks = Doubles (*)[kMomentLanes][kSums];

  // Calls visit(i) for the sums from kFirst on of each of kCount vectors.
  template <int kFirst, int kCount, class Visit>
  DMLOPS_INLINE static void for_each_sum(const Visit& visit) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount * kSums; ++i) {
      if (i % kSums >= kFirst) visit(i);
    }
  }

  // Adds the rows of a lane, of the vectors of columns that `add` are for.
  template <int kCount, class Add>
  DMLOPS_INLINE static void add_lane(const Add (&add)[kCount], std::int64_t lane, std::int64_t rows,
                                     V* sums) {
    for (std::int64_t r = lane; r < rows; r += kMomentLanes) {
#pragma GCC unroll 16
      for (int v = 0; v < kCount; ++v) add[v](r, sums + v * kSums);
    }
  }

  // The lanes [first, end) of a block's rows, whose sums continue or begin.
  struct LanesOfRows {
    std::int64_t first, end, rows;
    bool continues;
  };
  // Adds the rows of these lanes, of the vectors of columns from c on.
  template <int kFirst, class MakeTerms, std::size_t... kIndex>
  DMLOPS_INLINE void add_lanes(const LanesOfRows& lanes, std::int64_t c,
                               const MakeTerms& make_terms, std::index_sequence<kIndex...>) {
    constexpr int kCount = sizeof...(kIndex);
    const decltype(make_terms(c)) add[] = {
        make_terms(c + static_cast<std::int64_t>(kIndex) * kFloatLanes)...};
    for (std::int64_t lane = lanes.first; lane < lanes.end; ++lane) {
      const auto kept = [&](int i) -> V& {
        return lanes_[c / kFloatLanes + i / kSums][lane][i % kSums];
      };
      // Element by element, so that the sums stay in registers.
      V sums[kCount * kSums];
      for_each_sum<kFirst, kCount>(
          [&](int i) DMLOPS_LAMBDA_INLINE { sums[i] = lanes.continues ? kept(i) : V{}; });
      add_lane(add, lane, lanes.rows, sums);
      for_each_sum<kFirst, kCount>([&](int i) DMLOPS_LAMBDA_INLINE { kept(i) = sums[i]; });
    }
  }

  // Adds all rows, at most kRows, of vectors of columns from c on.
  template <int kFirst, class MakeTerms, std::size_t... kIndex>
  DMLOPS_INLINE void fold_rows(std::int64_t count, std::int64_t c, const MakeTerms& make_terms,
                               std::index_sequence<kIndex...>) {
    constexpr int kCount = sizeof...(kIndex);
    const decltype(make_terms(c)) add[] = {
        make_terms(c + static_cast<std::int64_t>(kIndex) * kFloatLanes)...};
    fold<kFirst, kCount>(
        min(count, kMomentLanes),
        [&](std::int64_t lane, Doubles* sums) DMLOPS_LAMBDA_INLINE {
          V lane_sums[kCount * kSums] = {};
          add_lane(add, lane, count, lane_sums);
          copy_sums<kFirst, kCount>(lane_sums, sums);
        },
        totals_[c / kFloatLanes]);
  }

  // Adds lanes of the block to those of the previous blocks.
  template <int kFirst>
  DMLOPS_INLINE void end_block(std::int64_t v, std::int64_t begin, std::int64_t end, bool first) {
    for (std::int64_t lane = begin; lane < end; ++lane) {
      for_each_sum<kFirst, 1>([&](int i) DMLOPS_LAMBDA_INLINE {
        const Doubles sum = wide(lanes_[v][lane][i]);
        blocks_[v][lane][i] = first ? sum : blocks_[v][lane][i] + sum;
      });
    }
  }
  DMLOPS_INLINE static Doubles wide(f32x v) { return to_double(v); }
  DMLOPS_INLINE static Doubles wide(Doubles v) { return v; }

  template <int kFirst, int kCount, class Lane>
  DMLOPS_INLINE static void copy_sums(const Lane* from, Doubles* to) {
    for_each_sum<kFirst, kCount>([&](int i) DMLOPS_LAMBDA_INLINE { to[i] = wide(from[i]); });
  }
  template <int kFirst, int kCount>
  DMLOPS_INLINE static void add_sums(Doubles* sums, const Doubles* others) {
    for_each_sum<kFirst, kCount>([&](int i)
                                     DMLOPS_LAMBDA_INLINE { sums[i] = sums[i] + others[i]; });
  }

  // Adds the first `used` lanes of kCount vectors in the fixed order: lane j + 16 to lane j, then
  // lane j + 8, and so on. lane(j, sums) sets `sums` to those of a lane. Lanes are visited in
  // bit-reversed order, so that few sums wait for others.
  template <int kFirst, int kCount, class Lane>
  DMLOPS_INLINE static void fold(std::int64_t used, const Lane& lane, Doubles* total) {
    constexpr std::int64_t kReversed[] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    static_assert(kMomentLanes == 2 * sizeof kReversed / sizeof kReversed[0]);
    Doubles waiting[5][kCount * kSums];
    std::int64_t half = 1;
    int level = 0;
    while (2 * half < used) half *= 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const std::int64_t j = kReversed[i] * half / (kMomentLanes / 2);
      Doubles sums[kCount * kSums];
      lane(j, sums);
      if (j + half < used) {
        Doubles other[kCount * kSums];
        lane(j + half, other);
        add_sums<kFirst, kCount>(sums, other);
      }
      level = 0;
      for (std::int64_t bits = i; bits % 2 != 0; bits /= 2)
        add_sums<kFirst, kCount>(sums, waiting[level++]);
      copy_sums<kFirst, kCount>(sums, waiting[level]);
    }
    copy_sums<kFirst, kCount>(waiting[level], total);
  }
  template <int kFirst, class Lane>
  static void fold_lanes(const Lane (&lanes)[kMomentLanes][kSums], std::int64_t used,
                         Doubles (&total)[kSums]) {
    fold<kFirst, 1>(
        used,
        [&](std::int64_t j, Doubles* sums)
            DMLOPS_LAMBDA_INLINE { copy_sums<kFirst, 1>(lanes[j], sums); },
        total);
  }

  alignas(kVectorBytes) V lanes_[kVectors][kMomentLanes][kSums];  // of the block
  alignas(kVectorBytes) Doubles own_blocks_[kVectors][kMomentLanes][kSums];
  Blocks blocks_ = own_blocks_;  // the lanes of all blocks
  // Initialized, since totals of sums that are not needed are read, but not used.
  alignas(kVectorBytes) Doubles totals_[kVectors][kSums] = {};
};

}  // namespace dmlops::DMLOPS_TARGET
