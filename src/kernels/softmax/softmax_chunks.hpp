// softmax in chunks, as log_softmax_chunks.hpp has it.
#pragma once

#include "kernels/softmax/softmax_terms.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void softmax_sums(const GroupChunks& chunks, double* lanes, double* maxima) {
  const T* x = static_cast<const T*>(chunks.input);
  for (std::int64_t g = 0; g < chunks.count; ++g, x += chunks.length) {
    const GroupTerms<T> terms(chunks.max[g]);
    maxima[g] = 0;  // not counted
    for (std::int64_t begin = 0; begin < chunks.length; begin += kSumBlock, lanes += kSumLanes) {
      TermSum<T> sum;
      sum.add(min(chunks.length - begin, kSumBlock),
              [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
                return terms(load_elements(x + begin, i, used)).rounded();
              });
      std::memcpy(lanes, sum.lanes(), kSumLanes * sizeof(double));
    }
  }
}

template <class T>
void softmax_finish(const GroupChunks& chunks, const double* sums, const double*, void* output) {
  constexpr float kUnscaled = SoftmaxTerm<T>::kScale == 0 ? 1.0f : 0x1p-64f;
  const T* x = static_cast<const T*>(chunks.input);
  T* y = static_cast<T*>(output);
  for (std::int64_t g = 0; g < chunks.count; ++g, x += chunks.length, y += chunks.length) {
    const GroupTerms<T> terms(chunks.max[g]);
    const FloatPair inverse(1.0 / static_cast<double>(kUnscaled) / sums[g]);
    for_each_vector_of_row(
        chunks.length, [&](std::int64_t i, std::int64_t used) DMLOPS_LAMBDA_INLINE {
          const f32x product = terms(load_elements(x, i, used)).times(inverse.high, inverse.low);
          store_elements(y, i, used, canonical_nan(product * kUnscaled));
        });
  }
}

}  // namespace dmlops::DMLOPS_TARGET
