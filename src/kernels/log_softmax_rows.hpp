// log_softmax along rows: a group's elements are neighbours in memory, and 64 of them fill the
// lanes of the sum.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

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
    others[0] += load_partial<f32x>(x + i, static_cast<std::size_t>(count - i), any);
  }
  for (const Range& other : others) range += other;
}

template <class T>
class RowSum {
 public:
  // Adds elements of the group: a whole number of steps, or the last ones.
  template <bool kNear>
  void add(const T* x, std::int64_t count, const Terms<T>& terms) {
    for (std::int64_t begin = 0; begin < count;) {
      const std::int64_t part = least(count - begin, (kSumSteps - steps_) * kSumLanes);
      add_steps<kNear>(x + begin, part, terms);
      steps_ += (part + kSumLanes - 1) / kSumLanes;
      if (steps_ == kSumSteps) move_to_lanes();
      begin += part;
    }
    count_ += count;
  }

  // Of all that was added: the lanes, their sum, and how many elements equal the maximum.
  const double* lanes() {
    if (steps_ != 0) move_to_lanes();
    return lanes_;
  }
  double sum() {
    lanes();
    int half = kSumLanes / 2;
    for (; half >= kLanes<f64x>; half /= 2) {
      for (int j = 0; j < half; j += kLanes<f64x>) {
        store(lanes_ + j, load<f64x>(lanes_ + j) + load<f64x>(lanes_ + j + half));
      }
    }
    for (; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) lanes_[j] += lanes_[j + half];
    }
    return lanes_[0];
  }
  float maxima() const { return static_cast<float>(count_ - others_); }

 private:
  // Independent sums: enough to hide the latency of a term, few enough for the register file.
  static constexpr int kRegisters = kVectorBytes == 64 ? 4 : 2;
  static constexpr std::int64_t kWidth = kRegisters * kLanes<f32x>;

  template <bool kNear>
  DMLOPS_INLINE void add_steps(const T* x, std::int64_t count, const Terms<T>& terms) {
    const std::int64_t whole = count / kSumLanes * kSumLanes;
    i32x others = {};
    for (std::int64_t lane = 0; lane < kSumLanes; lane += kWidth) {
      LaneSums<T> sums[kRegisters];
      if (steps_ != 0) {
        for (int k = 0; k < kRegisters; ++k) {
          sums[k] = LaneSums<T>::from(sums_ + lane + k * kLanes<f32x>);
        }
      }
      for (std::int64_t i = lane; i < whole; i += kSumLanes) {
        for (int k = 0; k < kRegisters; ++k) {
          sums[k] += terms.template term<kNear>(load<f32x>(x + i + k * kLanes<f32x>), others);
        }
      }
      for (int k = 0; k < kRegisters; ++k) {
        const std::int64_t at = lane + k * kLanes<f32x>;
        const std::int64_t i = whole + at;
        if (i < count) sums[k] += last_terms(x + i, count - i, terms, others);
        sums[k].store_to(sums_ + at);
      }
    }
    others_ += fold(others, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a + b; });
  }

  // What is missing is -infinity, which adds 0.
  DMLOPS_INLINE f32x last_terms(const T* x, std::int64_t count, const Terms<T>& terms,
                                i32x& others) {
    const std::int64_t used = least(count, kLanes<f32x>);
    count_ += kLanes<f32x> - used;
    return terms.template term<false>(
        load_partial<f32x>(x, static_cast<std::size_t>(used), kNegativeInfinity<T>), others);
  }

  void move_to_lanes() {
    for (int k = 0; k < kSumLanes; k += kLanes<f64x>) {
      const f64x sums = to_double(sums_ + k);
      store(lanes_ + k, blocks_ == 0 ? sums : load<f64x>(lanes_ + k) + sums);
    }
    steps_ = 0;
    ++blocks_;
  }

  alignas(kVectorBytes) double lanes_[kSumLanes];                     // of the blocks before
  alignas(kVectorBytes) typename LaneSums<T>::Lane sums_[kSumLanes];  // of the current steps
  std::int64_t steps_ = 0, blocks_ = 0;
  std::int64_t count_ = 0, others_ = 0;  // elements, and those that are not the maximum
};

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

  void select(std::int64_t group) {
    input_ = groups_.input + group * groups_.input_step;
    output_ = groups_.output + group * groups_.output_step;
  }

  DMLOPS_INLINE void add_to(Range& range) {
    for_each([&](const T* x, std::int64_t, std::int64_t length)
                 DMLOPS_LAMBDA_INLINE { add_to_range(range, x, length); });
  }

  template <bool kNear>
  void add_to(RowSum<T>& sum, float max) {
    const Terms<T> terms(splat<f32x>(max));
    for_each([&](const T* x, std::int64_t, std::int64_t length)
                 DMLOPS_LAMBDA_INLINE { sum.template add<kNear>(x, length, terms); });
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
  static constexpr std::int64_t kPart = kSumBlock;

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
  void add_up() {
    for (std::int64_t k = 0; k < count_; ++k) {
      parts_.select(first_ + k);
      RowSum<T> sum;
      parts_.template add_to<kNear>(sum, subtrahends_.max[k]);
      subtrahends_.sum[k] = sum.sum();
      subtrahends_.maxima[k] = sum.maxima();
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
