// log_softmax along rows, for groups of contiguous elements.
#pragma once

#include "kernels/softmax/log_softmax_group.hpp"
#include "kernels/softmax/log_softmax_row_sum.hpp"

namespace dmlops::DMLOPS_TARGET {

template <bool kInRange, class T>
DMLOPS_INLINE void finish_row(T* y, const T* x, std::int64_t count,
                              const Difference<T>& difference) {
  transform_row<f32x, 2>(y, x, count, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
    return difference.template of<kInRange>(v);
  });
}

// Groups are computed in batches, so that reductions of lanes and logarithms use whole vectors.
constexpr int kRowBatch = 32;
constexpr std::int64_t kRowBatchBytes = 64 * 1024;  // well within L2

// Groups whose elements are contiguous in the operands, or packed once for all passes.
template <class T>
class WholeRows {
 public:
  WholeRows(const Reduction& groups, const ElementLoops& in, const ElementLoops& out)
      : groups_(groups),
        in_(in),
        out_(out),
        count_(in.count()),
        packs_(!is_dense(in)),
        unpacks_(!is_dense(out)) {}

  // True if no buffer is needed, or a group fits it.
  static bool fit(const ElementLoops& in, const ElementLoops& out) {
    return (is_dense(in) && is_dense(out)) || in.count() * kSize <= kRowBatchBytes;
  }

  std::int64_t count() const { return count_; }  // elements in a group

  void load(const std::int64_t* offsets, std::int64_t groups) {
    for (std::int64_t k = 0; packs_ && k < groups; ++k) {
      char* const target = buffer_ + k * count_ * kSize;
      const char* const input = groups_.data[1] + offsets[k];
      in_.for_each_run(0, count_, [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
        pack<Bits<T>>(target + i * kSize, 0, run, 1, {input + offset, 0, in_.step(), nullptr});
      });
    }
  }
  DMLOPS_INLINE void select(std::int64_t k, std::int64_t input_offset, std::int64_t output_offset) {
    input_ = reinterpret_cast<const T*>(packs_ ? buffer_ + k * count_ * kSize
                                               : groups_.data[1] + input_offset);
    output_ = groups_.data[0] + output_offset;
  }

  template <class Sum>
  DMLOPS_INLINE void add_to(Sum& sum) {
    sum.add(input_, count_);
  }

  template <bool kInRange>
  DMLOPS_INLINE void finish(float high, float low) {
    const Difference<T> difference(splat<f32x>(high), splat<f32x>(low));
    // Results to unpack overwrite the packed elements, which no later pass needs.
    char* const results = !unpacks_ ? output_ : packs_ ? packed() : buffer_;
    finish_row<kInRange>(reinterpret_cast<T*>(results), input_, count_, difference);
    if (unpacks_) unpack_row(results);
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);

  static bool is_dense(const ElementLoops& loops) {
    return loops.rank == 1 && loops.step() == kSize;
  }

  char* packed() { return buffer_ + (reinterpret_cast<const char*>(input_) - buffer_); }

  DMLOPS_NO_INLINE void unpack_row(const char* results) {
    out_.for_each_run(0, count_, [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
      if (out_.step() == kSize) return copy_run(output_ + offset, results + i * kSize, run * kSize);
      unpack<Bits<T>>(output_ + offset, out_.step(), nullptr, results + i * kSize, run);
    });
  }

  const Reduction& groups_;
  const ElementLoops& in_;
  const ElementLoops& out_;
  std::int64_t count_;
  bool packs_, unpacks_;
  const T* input_ = nullptr;
  char* output_ = nullptr;
  alignas(kVectorBytes) char buffer_[kRowBatchBytes];
};

// Longer groups, in chunks: dense ones in place, others through a buffer.
template <class T>
class ChunkedRows {
 public:
  ChunkedRows(const Reduction& groups, const ElementLoops& in, const ElementLoops& out)
      : groups_(groups),
        in_(in),
        out_(out),
        count_(in.count()),
        dense_input_(dense(in)),
        dense_output_(dense(out)) {}

  // True if no buffer is needed.
  static bool dense(const ElementLoops& loops) {
    return loops.step() == kSize && (loops.rank == 1 || loops.run() % kSumLanes == 0);
  }

  std::int64_t count() const { return count_; }  // elements in a group

  void load(const std::int64_t*, std::int64_t) {}
  void select(std::int64_t, std::int64_t input_offset, std::int64_t output_offset) {
    input_ = groups_.data[1] + input_offset;
    output_ = groups_.data[0] + output_offset;
  }

  template <class Sum>
  DMLOPS_INLINE void add_to(Sum& sum) {
    for_each([&](const T* x, std::int64_t, std::int64_t length)
                 DMLOPS_LAMBDA_INLINE { sum.add(x, length); });
  }

  template <bool kInRange>
  void finish(float high, float low) {
    const Difference<T> difference(splat<f32x>(high), splat<f32x>(low));
    for_each([&](const T* x, std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
      const auto write = [&](T* y, const T* from, std::int64_t count) DMLOPS_LAMBDA_INLINE {
        finish_row<kInRange>(y, from, count, difference);
      };
      if (!dense_output_) write(reinterpret_cast<T*>(buffer_), x, length);
      out_.for_each_run(
          begin, begin + length,
          [&](std::int64_t offset, std::int64_t i, std::int64_t run) DMLOPS_LAMBDA_INLINE {
            if (dense_output_) {
              out_.template prefetch_next<1>(output_ + offset);
              write(reinterpret_cast<T*>(output_ + offset), x + i, run);
            } else {
              unpack<Bits<T>>(output_ + offset, out_.step(), nullptr, buffer_ + i * kSize, run);
            }
          });
    });
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kChunk = 4 * kSumBlock;

  // Calls visit(elements, index of the first, their number) for dense ranges; lengths are multiples
  // of kSumLanes unless there is one range only.
  template <class Visit>
  DMLOPS_INLINE void for_each(const Visit& visit) {
    const std::int64_t chunk = dense_input_ && dense_output_ ? count_ : kChunk;
    for (std::int64_t begin = 0; begin < count_; begin += chunk) {
      const std::int64_t length = min(chunk, count_ - begin);
      in_.for_each_run(begin, begin + length,
                       [&](std::int64_t offset, std::int64_t i, std::int64_t run)
                           DMLOPS_LAMBDA_INLINE {
                             if (dense_input_) {
                               in_.template prefetch_next<0>(input_ + offset);
                               visit(reinterpret_cast<const T*>(input_ + offset), begin + i, run);
                             } else {
                               pack<Bits<T>>(buffer_ + i * kSize, 0, run, 1,
                                             {input_ + offset, 0, in_.step(), nullptr});
                             }
                           });
      if (!dense_input_) visit(reinterpret_cast<const T*>(buffer_), begin, length);
    }
  }

  const Reduction& groups_;
  const ElementLoops& in_;
  const ElementLoops& out_;
  std::int64_t count_;
  bool dense_input_, dense_output_;
  const char* input_ = nullptr;
  char* output_ = nullptr;
  alignas(kVectorBytes) char buffer_[kChunk * kSize];
};

template <class T, class Layout>
class RowBatch : GroupBatch<RowBatch<T, Layout>, T, kRowBatch> {
  using Base = GroupBatch<RowBatch<T, Layout>, T, kRowBatch>;
  friend Base;

 public:
  RowBatch(const Reduction& groups, const ElementLoops& in, const ElementLoops& out)
      : rows_(groups, in, out), offsets_(groups.kept), single_block_(in.count() <= kSumBlock) {
    const std::int64_t fitting = kRowBatchBytes / static_cast<std::int64_t>(sizeof(T)) / in.count();
    size_ = fitting < 1 ? 1 : min(fitting, kRowBatch);
  }

  // Computes the groups [first, end).
  void run(std::int64_t first, std::int64_t end) {
    for (; first < end; first += size_) {
      count_ = min(size_, end - first);
      offsets_.select(first, count_);
      rows_.load(offsets_.input.offsets(), count_);
      Base::run(count_);
    }
  }

 private:
  using Base::log_sum_exp_;
  using Sum = typename LaneSums<T>::Lane;
  using Folded = Vec<Sum>;

  std::int64_t elements() const { return rows_.count(); }

  void select(std::int64_t k) {
    rows_.select(k, offsets_.input.offsets()[k], offsets_.output.offsets()[k]);
  }

  void find_maxima() {
    for (std::int64_t k = 0; k < count_; ++k) {
      select(k);
      RowMaximum<T> maximum;
      rows_.add_to(maximum);
      maxima_.set(k, maximum.largest);
    }
    fold_maxima();
  }

  void add_plain() {
    for (std::int64_t k = 0; k < count_; ++k) {
      select(k);
      RowSum<PlainTerms<T>> sum({});
      add_group(k, sum, log_sum_exp_.plain_sum);
      if constexpr (std::is_same_v<T, float>) minima_.set(k, sum.seen().smallest);
      maxima_.set(k, sum.seen().largest);
    }
    fold_sums(log_sum_exp_.plain_sum);
    if constexpr (std::is_same_v<T, float>) fold_minima();
    fold_maxima();
  }

  void add_excluding_max() {
    for (std::int64_t k = 0; k < count_; ++k) {
      select(k);
      if (log_sum_exp_.sum_excluding_max[k] >= 0) {  // the plain sum sufficed
        non_max_counts_.set(k, i32x{});
        continue;
      }
      RowSum<TermsExcludingMax<T>> sum(TermsExcludingMax<T>(splat<f32x>(log_sum_exp_.largest[k])));
      add_group(k, sum, log_sum_exp_.sum_excluding_maxima);
      if (single_block_) {
        non_max_counts_.set(k, sum.seen().count);
      } else {
        log_sum_exp_.max_count[k] = static_cast<float>(rows_.count() - sum.non_max_count());
      }
    }
    fold_sums(log_sum_exp_.sum_excluding_maxima);
    for (std::int64_t k = 0; single_block_ && k < count_; k += kLanes<f32x>) {
      const i32x below_max = non_max_counts_.fold(k, count_, Addition());
      const i32x maxima = static_cast<std::int32_t>(rows_.count()) - below_max;
      store(log_sum_exp_.max_count + k, __builtin_convertvector(maxima, f32x));
    }
  }

  template <class Terms>
  DMLOPS_INLINE void add_group(std::int64_t k, RowSum<Terms>& sum, Sum* sums) {
    rows_.add_to(sum);
    if (single_block_) {
      sums_.set(k, sum.folded());
    } else {
      sums[k] = static_cast<Sum>(sum.sum());
    }
  }

  void fold_sums(Sum* sums) {
    if (single_block_) fold_into(sums, sums_, Addition());
  }

  void fold_minima() {
    fold_into(smallest_, minima_, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return min(a, b); });
  }

  void fold_maxima() {
    fold_into(log_sum_exp_.largest, maxima_,
              [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return max(a, b); });
  }

  template <class V, class Operation>
  DMLOPS_INLINE void fold_into(Lane<V>* target, const Folding<V, kRowBatch>& rows,
                               const Operation& operation) {
    for (std::int64_t k = 0; k < count_; k += kLanes<V>)
      store(target + k, rows.fold(k, count_, operation));
  }

  void finish() {
    for (std::int64_t k = 0; k < count_; ++k) {
      select(k);
      const float high = log_sum_exp_.high[k], low = log_sum_exp_.low[k];
      if (Difference<T>::is_in_range(smallest_[k], high)) {
        rows_.template finish<true>(high, low);
      } else {
        rows_.template finish<false>(high, low);
      }
    }
  }

  Layout rows_;
  GroupOffsets<kRowBatch> offsets_;
  alignas(kVectorBytes) float smallest_[kRowBatch] = {};
  Folding<f32x, kRowBatch> minima_, maxima_;
  Folding<Folded, kRowBatch> sums_;
  Folding<i32x, kRowBatch> non_max_counts_;
  bool single_block_;  // of the sums
  std::int64_t size_, count_ = 0;
};

}  // namespace dmlops::DMLOPS_TARGET
