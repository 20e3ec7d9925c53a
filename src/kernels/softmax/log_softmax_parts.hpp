// log_softmax in parts, for groups that no one process holds: the lanes of a part's blocks, and its
// results once the sums are known. The steps are those along rows, and so are the bits.
#pragma once

#include "kernels/softmax/log_softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void log_softmax_sums(const GroupParts& parts, double* lanes, double* maxima) {
  const T* x = static_cast<const T*>(parts.input);
  for (std::int64_t g = 0; g < parts.count; ++g, x += parts.length) {
    const OtherTerms<T> others(splat<f32x>(parts.max[g]));
    maxima[g] = 0;
    for (std::int64_t begin = 0; begin < parts.length; begin += kSumBlock) {
      const std::int64_t length = least(parts.length - begin, kSumBlock);
      RowSum<OtherTerms<T>> rest(others);
      rest.add(x + begin, length);
      alignas(kVectorBytes) double both[2][kSumLanes] = {};
      rest.store_to(both[0]);
      RowSum<PlainTerms<T, false>> plain({});
      plain.add(x + begin, length);
      plain.store_to(both[1]);
      for (int j = 0; j < kSumLanes; ++j, lanes += 2) {
        lanes[0] = both[0][j];
        lanes[1] = both[1][j];
      }
      maxima[g] += static_cast<double>(length - rest.others());
    }
  }
}

template <class T>
void log_softmax_finish(const GroupParts& parts, const double* sums, const double* maxima,
                        void* output) {
  constexpr std::int64_t kBatch = 32;
  using Sum = typename Subtrahends<T, kBatch>::Sum;
  Subtrahends<T, kBatch> subtrahends = {};
  const T* x = static_cast<const T*>(parts.input);
  T* y = static_cast<T*>(output);
  for (std::int64_t first = 0; first < parts.count; first += kBatch) {
    const std::int64_t used = least(kBatch, parts.count - first);
    for (std::int64_t k = 0; k < used; ++k) {
      subtrahends.max[k] = parts.max[first + k];
      subtrahends.rest[k] = static_cast<Sum>(sums[2 * (first + k)]);
      subtrahends.plain[k] = static_cast<Sum>(sums[2 * (first + k) + 1]);
      subtrahends.maxima[k] = static_cast<float>(maxima[first + k]);
    }
    subtrahends.take_plain(used);
    subtrahends.take_rest(used);
    subtrahends.compute(used);
    for (std::int64_t k = 0; k < used; ++k, x += parts.length, y += parts.length) {
      const Difference<T> difference(splat<f32x>(subtrahends.high[k]),
                                     splat<f32x>(subtrahends.low[k]));
      transform_row<f32x, 2>(y, x, parts.length, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
        return difference.template of<false>(v);
      });
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
