// log_softmax in chunks, for groups distributed over processes: the lanes of a chunk's blocks, and
// its results once the sums are known. Results are bit-identical to those of whole groups.
#pragma once

#include "kernels/softmax/log_softmax_rows.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class T>
void log_softmax_sums(const GroupChunks& chunks, double* lanes, double* maxima) {
  const T* x = static_cast<const T*>(chunks.input);
  for (std::int64_t g = 0; g < chunks.count; ++g, x += chunks.length) {
    const TermsExcludingMax<T> terms(splat<f32x>(chunks.max[g]));
    maxima[g] = 0;
    for (std::int64_t begin = 0; begin < chunks.length; begin += kSumBlock) {
      const std::int64_t length = min(chunks.length - begin, kSumBlock);
      alignas(kVectorBytes) double both[2][kSumLanes];
      RowSum<T> excluding_max, plain;
      excluding_max.clear();
      plain.clear();
      NonMaxCount below_max;
      add_terms_excluding_max(excluding_max, x + begin, length, terms, below_max);
      excluding_max.store_to(both[0]);
      Range<T> seen;
      add_plain_terms(plain, x + begin, length, seen);
      plain.store_to(both[1]);
      for (int j = 0; j < kSumLanes; ++j, lanes += 2) {
        lanes[0] = both[0][j];
        lanes[1] = both[1][j];
      }
      maxima[g] += static_cast<double>(length - fold(below_max.count, Addition()));
    }
  }
}

template <class T>
void log_softmax_finish(const GroupChunks& chunks, const double* sums, const double* maxima,
                        void* output) {
  constexpr std::int64_t kBatch = 32;
  using Sum = typename LogSumExp<T, kBatch>::Sum;
  LogSumExp<T, kBatch> log_sum_exp = {};
  const T* x = static_cast<const T*>(chunks.input);
  T* y = static_cast<T*>(output);
  for (std::int64_t first = 0; first < chunks.count; first += kBatch) {
    const std::int64_t used = min(kBatch, chunks.count - first);
    for (std::int64_t k = 0; k < used; ++k) {
      log_sum_exp.largest[k] = chunks.max[first + k];
      log_sum_exp.sum_excluding_maxima[k] = static_cast<Sum>(sums[2 * (first + k)]);
      log_sum_exp.plain_sum[k] = static_cast<Sum>(sums[2 * (first + k) + 1]);
      log_sum_exp.max_count[k] = static_cast<float>(maxima[first + k]);
    }
    log_sum_exp.take_plain(used);
    log_sum_exp.take_excluding_max(used);
    log_sum_exp.compute(used);
    for (std::int64_t k = 0; k < used; ++k, x += chunks.length, y += chunks.length) {
      finish_row(y, x, chunks.length, -kInfinity, log_sum_exp.high[k], log_sum_exp.low[k]);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
