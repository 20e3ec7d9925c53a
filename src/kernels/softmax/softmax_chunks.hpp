// softmax in chunks, for groups distributed over processes; the interface is that of
// log_softmax_chunks.hpp.
#pragma once

#include "kernels/softmax/rows.hpp"
#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void softmax_sums(const GroupChunks& chunks, double* lanes, double* maxima) {
  const T* x = static_cast<const T*>(chunks.input);
  for (std::int64_t g = 0; g < chunks.count; ++g, x += chunks.length) {
    const GroupTerms<T> terms(splat<f32x>(chunks.max[g]));
    maxima[g] = 0;  // softmax needs no count
    for (std::int64_t begin = 0; begin < chunks.length; begin += kSumBlock, lanes += kSumLanes) {
      RowSum<T> sum;
      sum.add(min(chunks.length - begin, kSumBlock),
              [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                return terms(load_elements(x + begin, i, used)).rounded();
              });
      sum.store_to(lanes);
    }
  }
}

template <class T>
void softmax_finish(const GroupChunks& chunks, const double* sums, const double*, void* output) {
  constexpr std::int64_t kBatch = 32;
  Reciprocals<T, kBatch> reciprocals = {};
  const T* x = static_cast<const T*>(chunks.input);
  T* y = static_cast<T*>(output);
  for (std::int64_t first = 0; first < chunks.count; first += kBatch) {
    const std::int64_t used = min(kBatch, chunks.count - first);
    for (std::int64_t k = 0; k < used; ++k)
      reciprocals.sum[k] = static_cast<typename RowSum<T>::Lane>(sums[first + k]);
    reciprocals.compute(used, true);
    for (std::int64_t k = 0; k < used; ++k, x += chunks.length, y += chunks.length) {
      const GroupTerms<T> terms(splat<f32x>(chunks.max[first + k]));
      const f32x high = splat<f32x>(reciprocals.high[k]), low = splat<f32x>(reciprocals.low[k]);
      for_each_vector_of_row(chunks.length,
                             [&](std::int64_t i, std::int64_t count) DMLOPS_LAMBDA_INLINE {
                               const auto term = terms(load_elements(x, i, count));
                               store_elements(y, i, count, terms.last(term.times(high, low)));
                             });
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
