// log_softmax along rows: a group's elements are neighbours in memory, and 16 of them fill the
// lanes of the sum.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

template <class Terms>
class RowSum {
 public:
  using T = typename Terms::Element;
  using Seen = typename Terms::Seen;

  explicit RowSum(const Terms& terms) : terms_(terms) {}

  // Adds elements of the group: a whole number of steps, or the last ones.
  template <bool kNear>
  DMLOPS_INLINE void add(const T* x, std::int64_t count) {
    for (std::int64_t begin = 0; begin < count;) {
      if (steps_ == kSumSteps) end_block();
      const std::int64_t part = least(count - begin, (kSumSteps - steps_) * kSumLanes);
      add_steps<kNear>(x + begin, part);
      steps_ += (part + kSumLanes - 1) / kSumLanes;
      begin += part;
    }
  }

  // The lanes of all that was added.
  DMLOPS_INLINE void store_to(double* lanes) {
    end_block();
    for (int j = 0; j < kSumLanes; ++j) lanes[j] = blocks_[j];
  }
  // Their sum; that of a single block in its own type.
  DMLOPS_INLINE double sum() {
    if (block_ == 0) {
      others_ += seen_.others();
      for (int half = kVectors / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; ++k) sums_[k] += sums_[k + half];
      }
      return static_cast<double>(sums_[0].sum());
    }
    end_block();
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) blocks_[j] += blocks_[j + half];
    }
    return blocks_[0];
  }
  const Seen& seen() const { return seen_; }
  std::int64_t others() const { return others_; }  // once they have been added up

 private:
  static constexpr int kVectors = kSumLanes / kLanes<f32x>;

  template <bool kNear>
  DMLOPS_INLINE void add_steps(const T* x, std::int64_t count) {
    const std::int64_t whole = count / kSumLanes * kSumLanes;
    Seen seen = seen_;
    for (int k = 0; k < kVectors; ++k) {  // one by one, as the register file holds no more
      const std::int64_t lane = k * kLanes<f32x>, last = whole + lane;
      LaneSums<T> sums = sums_[k];
      for (std::int64_t i = lane; i < whole; i += kSumLanes) {
        sums += terms_.template term<kNear>(load<f32x>(x + i), seen);
      }
      if (last < count) {
        sums += terms_.last_terms(x + last, least(count - last, kLanes<f32x>), seen);
      }
      sums_[k] = sums;
    }
    seen_ = seen;
  }

  DMLOPS_INLINE void end_block() {
    alignas(kVectorBytes) typename LaneSums<T>::Lane lanes[kSumLanes];
    for (int k = 0; k < kVectors; ++k) {
      sums_[k].store_to(lanes + k * kLanes<f32x>);
      sums_[k] = {};
    }
    for (int j = 0; j < kSumLanes; j += kLanes<f64x>) {
      const f64x ended = to_double(lanes + j);
      store(blocks_ + j, block_ == 0 ? ended : load<f64x>(blocks_ + j) + ended);
    }
    others_ += seen_.others();
    steps_ = 0;
    ++block_;
  }

  const Terms terms_;
  LaneSums<T> sums_[kVectors];                      // of the current block
  alignas(kVectorBytes) double blocks_[kSumLanes];  // of those before
  Seen seen_;
  std::int64_t steps_ = 0, block_ = 0, others_ = 0;
};

template <class T>
DMLOPS_INLINE void add_to_range(Range& range, const T* x, std::int64_t count) {
  constexpr std::int64_t lanes = kLanes<f32x>;
  Range others[3];
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    range += load<f32x>(x + i);
    for (int k = 0; k < 3; ++k) others[k] += load<f32x>(x + i + (k + 1) * lanes);
  }
  for (; i + lanes <= count; i += lanes) range += load<f32x>(x + i);
  if (i < count) {
    const T any = load_element<T>(reinterpret_cast<const char*>(x + i));  // x need not be aligned
    range += load_first(x + i, count - i, any);
  }
  for (const Range& other : others) range += other;
}

// One group, part by part: in place where it is dense, through a buffer where it is not.
template <class T>
class RowParts {
 public:
  RowParts(const Groups& groups, const GroupShape& in, const GroupShape& out)
      : groups_(groups),
        in_(in),
        out_(out),
        count_(in.count()),
        dense_input_(dense(in)),
        dense_output_(dense(out)) {}

  std::int64_t count() const { return count_; }  // elements in a group

  void select(std::int64_t group) {
    input_ = groups_.input + group * groups_.input_step;
    output_ = groups_.output + group * groups_.output_step;
  }

  DMLOPS_INLINE void add_to(Range& range) {
    for_each([&](const T* x, std::int64_t, std::int64_t length)
                 DMLOPS_LAMBDA_INLINE { add_to_range(range, x, length); });
  }

  template <bool kNear, class Terms>
  DMLOPS_INLINE void add_to(RowSum<Terms>& sum) {
    for_each([&](const T* x, std::int64_t, std::int64_t length)
                 DMLOPS_LAMBDA_INLINE { sum.template add<kNear>(x, length); });
  }

  template <bool kNear>
  void finish(float high, float low) {
    const Difference<T> difference(splat<f32x>(high), splat<f32x>(low));
    for_each([&](const T* x, std::int64_t begin, std::int64_t length) DMLOPS_LAMBDA_INLINE {
      const auto write = [&](T* y, const T* from, std::int64_t count) DMLOPS_LAMBDA_INLINE {
        stream<f32x, 2>(y, from, count, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
          return difference.template of<kNear>(v);
        });
      };
      if (!dense_output_) write(reinterpret_cast<T*>(buffer_), x, length);
      out_.for_each_run(
          begin, begin + length,
          [&](std::int64_t offset, std::int64_t i, std::int64_t run) DMLOPS_LAMBDA_INLINE {
            if (dense_output_) {
              write(reinterpret_cast<T*>(output_ + offset), x + i, run);
            } else {
              unpack<Bits<T>>(output_ + offset, out_.step(), 0, buffer_ + i * kSize, run, 1);
            }
          });
    });
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kPart = 4 * kSumBlock;

  // visit(dense elements, index of the first, their number): runs where the input is dense, which
  // are a whole number of steps unless there is but one.
  template <class Visit>
  DMLOPS_INLINE void for_each(const Visit& visit) {
    const std::int64_t part = dense_input_ && dense_output_ ? count_ : kPart;
    for (std::int64_t begin = 0; begin < count_; begin += part) {
      const std::int64_t length = least(part, count_ - begin);
      in_.for_each_run(
          begin, begin + length,
          [&](std::int64_t offset, std::int64_t i, std::int64_t run) DMLOPS_LAMBDA_INLINE {
            if (dense_input_) {
              visit(reinterpret_cast<const T*>(input_ + offset), begin + i, run);
            } else {
              pack_row<Bits<T>>(buffer_ + i * kSize, run, input_ + offset, in_.step());
            }
          });
      if (!dense_input_) visit(reinterpret_cast<const T*>(buffer_), begin, length);
    }
  }

  static bool dense(const GroupShape& shape) {
    return shape.step() == kSize && (shape.rank == 1 || shape.run() % kSumLanes == 0);
  }

  const Groups& groups_;
  const GroupShape& in_;
  const GroupShape& out_;
  std::int64_t count_;
  bool dense_input_, dense_output_;
  const char* input_ = nullptr;
  char* output_ = nullptr;
  alignas(kVectorBytes) char buffer_[kPart * kSize];
};

// The groups go in batches that the first-level cache holds, so that the logarithms share vectors.
constexpr int kRowBatch = 32;

template <class T>
class RowBatch : Batch<RowBatch<T>, T, kRowBatch> {
  using Base = Batch<RowBatch<T>, T, kRowBatch>;
  friend Base;

 public:
  RowBatch(const Groups& groups, const GroupShape& in, const GroupShape& out)
      : parts_(groups, in, out) {
    const std::int64_t fitting = kTileBytes / static_cast<std::int64_t>(sizeof(T)) / in.count();
    size_ = fitting < 1 ? 1 : least(fitting, kRowBatch);
  }

  void run(std::int64_t groups) {
    for (first_ = 0; first_ < groups; first_ += size_) {
      count_ = least(size_, groups - first_);
      Base::run(count_);
    }
  }

 private:
  using Base::subtrahends_;

  void find_maxima(Range& all) {
    for (std::int64_t k = 0; k < count_; ++k) {
      Range range;
      parts_.select(first_ + k);
      parts_.add_to(range);
      subtrahends_.max[k] = range.largest();
      all += range;
    }
  }

  template <bool kNear>
  void add_plain(Range& all) {
    for (std::int64_t k = 0; k < count_; ++k) {
      RowSum<PlainTerms> sum({});
      parts_.select(first_ + k);
      parts_.template add_to<kNear>(sum);
      subtrahends_.max[k] = sum.seen().largest();
      subtrahends_.plain[k] = sum.sum();
      all += sum.seen();
    }
  }

  template <bool kNear>
  void add_rest() {
    for (std::int64_t k = 0; k < count_; ++k) {
      if (std::is_same_v<T, float> && subtrahends_.others[k] >= 0) continue;
      RowSum<OtherTerms<T>> sum(OtherTerms<T>(splat<f32x>(subtrahends_.max[k])));
      parts_.select(first_ + k);
      parts_.template add_to<kNear>(sum);
      subtrahends_.rest[k] = sum.sum();
      subtrahends_.maxima[k] = static_cast<float>(parts_.count() - sum.others());
    }
  }

  template <bool kNear>
  void finish() {
    for (std::int64_t k = 0; k < count_; ++k) {
      parts_.select(first_ + k);
      parts_.template finish<kNear>(subtrahends_.high[k], subtrahends_.low[k]);
    }
  }

  RowParts<T> parts_;
  std::int64_t size_, first_ = 0, count_ = 0;
};

}  // namespace dmlops::DMLOPS_TARGET
