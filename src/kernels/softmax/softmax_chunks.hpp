// softmax in chunks, for groups distributed over processes; the interface is that of
// log_softmax_chunks.hpp.
#pragma once

#include "kernels/softmax/softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void softmax_sums(const GroupChunks& chunks, double* lanes, double* maxima) {
  const T* x = static_cast<const T*>(chunks.input);
  for (std::int64_t g = 0; g < chunks.count; ++g, x += chunks.length) {
    const GroupTerms<T> terms(splat<f32x>(chunks.max[g]));
    maxima[g] = 0;  // softmax needs no count
    for (std::int64_t begin = 0; begin < chunks.length; begin += kSumBlock, lanes += kSumLanes)
      add_block(x + begin, min(chunks.length - begin, kSumBlock), terms, lanes);
  }
}

template <class T>
void softmax_finish(const GroupChunks& chunks, const double* sums, const double*, void* output) {
  constexpr std::int64_t kBatch = 32;
  TermSums<T, kBatch> term_sums = {};
  const T* x = static_cast<const T*>(chunks.input);
  T* y = static_cast<T*>(output);
  for (std::int64_t first = 0; first < chunks.count; first += kBatch) {
    const std::int64_t used = min(kBatch, chunks.count - first);
    for (std::int64_t k = 0; k < used; ++k)
      term_sums.sum[k] = static_cast<typename RowSum<T>::Lane>(sums[first + k]);
    term_sums.compute(used, true);
    for (std::int64_t k = 0; k < used; ++k, x += chunks.length, y += chunks.length) {
      const GroupTerms<T> terms(splat<f32x>(chunks.max[first + k]));
      finish_row(y, x, chunks.length, terms, term_sums.of_group(k));
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
