// log_softmax along rows: a group's elements are neighbours in memory, and 64 of them fill the
// lanes of the sum.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

// All lanes in one, by an operation whose order does not matter: quarters of 16 bytes first.
template <class V, class Operation>
DMLOPS_INLINE Lane<V> fold(V v, const Operation& operation) {
  using Quad = typename VectorOf<Lane<V>, 16>::type;
  alignas(kVectorBytes) Lane<V> lanes[kLanes<V>];
  store(lanes, v);
  Quad quad = load<Quad>(lanes);
  for (int i = kLanes<Quad>; i < kLanes<V>; i += kLanes<Quad>) {
    quad = operation(quad, load<Quad>(lanes + i));
  }
  const Lane<V> a = quad[0], b = quad[1], c = quad[2], d = quad[3];
  return operation(operation(a, b), operation(c, d));
}

template <class T>
float row_max(const T* x, std::int64_t count, float so_far) {
  constexpr std::int64_t lanes = kLanes<f32x>;
  f32x max[4];
  for (f32x& m : max) m = splat<f32x>(so_far);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    for (int k = 0; k < 4; ++k) max[k] = running_max(max[k], load<f32x>(x + i + k * lanes));
  }
  for (; i + lanes <= count; i += lanes) max[0] = running_max(max[0], load<f32x>(x + i));
  if (i < count) {
    const auto rest = static_cast<std::size_t>(count - i);
    max[1] = running_max(max[1], load_partial<f32x>(x + i, rest, negative_infinity<T>()));
  }
  const f32x all = running_max(running_max(max[0], max[1]), running_max(max[2], max[3]));
  return fold(all, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return running_max(a, b); });
}

template <class T>
class RowSum {
 public:
  // Adds elements of a group: a whole number of blocks, or the last ones.
  void add(const T* x, std::int64_t count, const Terms<T>& terms) {
    for (std::int64_t begin = 0; begin < count; begin += kSumBlock) {
      add_block(x + begin, least(count - begin, kSumBlock), terms);
    }
  }

  double maxima() const { return maxima_; }
  const double* lanes() const { return lanes_; }

  double sum() {
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

 private:
  void add_block(const T* x, std::int64_t count, const Terms<T>& terms) {
    // Steps of 64 elements; the last one is filled up with -infinity, which adds 0.
    alignas(kVectorBytes) T filled[kSumLanes];
    const std::int64_t whole = count / kSumLanes, rest = count % kSumLanes;
    if (rest != 0) {
      for (T& element : filled) element = negative_infinity<T>();
      std::memcpy(filled, x + whole * kSumLanes, static_cast<std::size_t>(rest) * sizeof(T));
    }
    // Independent sums: enough to hide the latency of a term, few enough for the register file.
    constexpr int kRegisters = kVectorBytes == 64 ? 4 : 2;
    constexpr int kWidth = kRegisters * kLanes<f32x>;
    i32x minus_maxima = {};
    for (int lane = 0; lane < kSumLanes; lane += kWidth) {
      LaneSum<T> sums[kRegisters];
      for (std::int64_t step = 0; step < whole + (rest != 0 ? 1 : 0); ++step) {
        const T* source = (step < whole ? x + step * kSumLanes : filled) + lane;
        for (int k = 0; k < kRegisters; ++k) {
          sums[k] += terms(load<f32x>(source + k * kLanes<f32x>), minus_maxima);
        }
      }
      for (int k = 0; k < kRegisters; ++k) move_to_lanes(lane + k * kLanes<f32x>, sums[k]);
    }
    maxima_ -= static_cast<double>(
        fold(minus_maxima, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a + b; }));
    first_ = false;
  }

  void move_to_lanes(int lane, const LaneSum<T>& sums) {
    alignas(kVectorBytes) float sum[kLanes<f32x>], lost[kLanes<f32x>];
    store(sum, sums.sum);
    store(lost, sums.lost);
    for (int k = 0; k < kLanes<f32x>; k += kLanes<f64x>) {
      const f64x total = LaneSum<T>::total(sum + k, lost + k);
      store(lanes_ + lane + k, first_ ? total : load<f64x>(lanes_ + lane + k) + total);
    }
  }

  alignas(kVectorBytes) double lanes_[kSumLanes];
  bool first_ = true;
  double maxima_ = 0;
};

// One group, part by part: in place where it is dense, through a buffer where it is not.
template <class T>
class RowParts {
 public:
  RowParts(const Groups& groups, const GroupShape& in, const GroupShape& out)
      : groups_(groups), in_(in), out_(out), count_(in.count()) {}

  void select(std::int64_t group) {
    input_ = groups_.input + group * groups_.input_step;
    output_ = groups_.output + group * groups_.output_step;
  }

  float max() {
    float result = negative_infinity<float>();
    for_each([&](const T* x, std::int64_t, std::int64_t length) {
      result = row_max(x, length, result);
    });
    return result;
  }

  void add_up(float max, double& sum, double& maxima) {
    RowSum<T> row;
    const Terms<T> terms(splat<f32x>(max));
    for_each([&](const T* x, std::int64_t, std::int64_t length) { row.add(x, length, terms); });
    sum = row.sum();
    maxima = row.maxima();
  }

  void finish(float subtrahend, float subtrahend_low) {
    const f32x high = splat<f32x>(subtrahend), low = splat<f32x>(subtrahend_low);
    for_each([&](const T* x, std::int64_t begin, std::int64_t length) {
      const bool dense = out_.dense(kSize);
      T* y = reinterpret_cast<T*>(dense ? output_ + begin * kSize : buffer_);
      stream<f32x, 2>(y, x, length, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
        return log_softmax_result<T>(v, high, low);
      });
      if (dense) return;
      out_.for_each_run(
          begin, begin + length, [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
            unpack<Bits<T>>(output_ + offset, out_.step(), 0, buffer_ + i * kSize, run, 1);
          });
    });
  }

 private:
  static constexpr std::int64_t kSize = sizeof(T);
  static constexpr std::int64_t kPart = kSumBlock;

  // visit(dense elements, index of the first, their number)
  template <class Visit>
  void for_each(const Visit& visit) {
    for (std::int64_t begin = 0; begin < count_; begin += kPart) {
      const std::int64_t length = least(kPart, count_ - begin);
      const char* x = input_ + begin * kSize;
      if (!in_.dense(kSize)) {
        x = buffer_;
        in_.for_each_run(begin, begin + length,
                         [&](std::int64_t offset, std::int64_t i, std::int64_t run) {
                           pack_row<Bits<T>>(buffer_ + i * kSize, run, input_ + offset, in_.step());
                         });
      }
      visit(reinterpret_cast<const T*>(x), begin, length);
    }
  }

  const Groups& groups_;
  const GroupShape& in_;
  const GroupShape& out_;
  std::int64_t count_;
  const char* input_ = nullptr;
  char* output_ = nullptr;
  alignas(kVectorBytes) char buffer_[kPart * kSize];
};

// The groups go in batches that the first-level cache holds, so that the logarithms share vectors.
template <class T>
void log_softmax_along_rows(const Groups& groups, const GroupShape& in, const GroupShape& out) {
  constexpr std::int64_t kBatch = 32;
  const std::int64_t fitting = kTileBytes / static_cast<std::int64_t>(sizeof(T)) / in.count();
  const std::int64_t batch = fitting < 1 ? 1 : least(fitting, kBatch);
  RowParts<T> parts(groups, in, out);
  Subtrahends<T, kBatch> subtrahends = {};
  for (std::int64_t first = 0; first < groups.count; first += batch) {
    const std::int64_t used = least(batch, groups.count - first);
    for (std::int64_t k = 0; k < used; ++k) {
      parts.select(first + k);
      subtrahends.max[k] = parts.max();
      parts.add_up(subtrahends.max[k], subtrahends.sum[k], subtrahends.maxima[k]);
    }
    subtrahends.compute(used);
    for (std::int64_t k = 0; k < used; ++k) {
      parts.select(first + k);
      parts.finish(subtrahends.high[k], subtrahends.low[k]);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
