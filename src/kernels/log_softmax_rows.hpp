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

class RowSum {
 public:
  // Adds elements of a group: a whole number of blocks, or the last ones.
  template <bool kRefined, class T>
  void add(const T* x, std::int64_t count, float maximum) {
    constexpr std::int64_t kBlock = kSumLanes * kSumSteps<kRefined>;
    const f32x max = splat<f32x>(maximum);
    for (std::int64_t begin = 0; begin < count; begin += kBlock, ++blocks_) {
      if (blocks_ > 0) move_to_lanes();
      add_block<kRefined>(x + begin, least(count - begin, kBlock), max);
    }
  }

  // The sum of all but one maximum.
  double rest() {
    if (blocks_ > 1) move_to_lanes();
    alignas(kVectorBytes) double partial[kSumLanes / 2];
    int half = kSumLanes / 2;
    for (int j = 0; j < half; j += kLanes<f64x>) {
      store(partial + j, blocks_ > 1 ? load<f64x>(lanes_ + j) + load<f64x>(lanes_ + j + half)
                                     : to_double(sums_ + j) + to_double(sums_ + j + half));
    }
    for (half /= 2; half >= kLanes<f64x>; half /= 2) {
      for (int j = 0; j < half; j += kLanes<f64x>) {
        store(partial + j, load<f64x>(partial + j) + load<f64x>(partial + j + half));
      }
    }
    for (; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) partial[j] += partial[j + half];
    }
    return partial[0] * 0x1p-64 + static_cast<double>(maxima_ - 1);
  }

 private:
  template <bool kRefined, class T>
  void add_block(const T* x, std::int64_t count, f32x max) {
    // Steps of 64 elements; the last one is filled up with -infinity, which adds 0.
    alignas(kVectorBytes) T filled[kSumLanes];
    const std::int64_t whole = count / kSumLanes, rest = count % kSumLanes;
    if (rest != 0) {
      for (T& element : filled) element = negative_infinity<T>();
      std::memcpy(filled, x + whole * kSumLanes, static_cast<std::size_t>(rest) * sizeof(T));
    }
    // Independent sums: enough to hide the latency of exp, few enough for any register file.
    constexpr int kRegisters = 4;
    constexpr int kWidth = kRegisters * kLanes<f32x>;
    i32x minus_maxima = {};
    for (int lane = 0; lane < kSumLanes; lane += kWidth) {
      f32x sums[kRegisters] = {};
      for (std::int64_t step = 0; step < whole + (rest != 0 ? 1 : 0); ++step) {
        const T* source = (step < whole ? x + step * kSumLanes : filled) + lane;
        for (int k = 0; k < kRegisters; ++k) {
          sums[k] += exp_below<kRefined>(load<f32x>(source + k * kLanes<f32x>), max, minus_maxima);
        }
      }
      for (int k = 0; k < kRegisters; ++k) store(sums_ + lane + k * kLanes<f32x>, sums[k]);
    }
    maxima_ -= fold(minus_maxima, [](auto a, auto b) DMLOPS_LAMBDA_INLINE { return a + b; });
  }

  void move_to_lanes() {
    for (int j = 0; j < kSumLanes; j += kLanes<f64x>) {
      const f64x sum = to_double(sums_ + j);
      store(lanes_ + j, in_lanes_ ? load<f64x>(lanes_ + j) + sum : sum);
    }
    in_lanes_ = true;
  }

  alignas(kVectorBytes) float sums_[kSumLanes];    // of the last block
  alignas(kVectorBytes) double lanes_[kSumLanes];  // of the blocks before it
  bool in_lanes_ = false;
  std::int64_t blocks_ = 0, maxima_ = 0;
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

  double rest(float max) {
    if (refines_at_once<T>(count_)) return rest_of<true>(max);
    const double coarse = rest_of<false>(max);
    return refines_later<T>(count_, coarse) ? rest_of<true>(max) : coarse;
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
  static constexpr std::int64_t kPart = 64 * kSumLanes;

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

  template <bool kRefined>
  double rest_of(float max) {
    RowSum sum;
    for_each([&](const T* x, std::int64_t, std::int64_t length) {
      sum.template add<kRefined>(x, length, max);
    });
    return sum.rest();
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
  alignas(kVectorBytes) float max[kBatch] = {};
  Subtrahends<T, kBatch> subtrahends;
  alignas(kVectorBytes) double rest[kBatch] = {};
  for (std::int64_t first = 0; first < groups.count; first += batch) {
    const std::int64_t used = least(batch, groups.count - first);
    for (std::int64_t k = 0; k < used; ++k) {
      parts.select(first + k);
      max[k] = parts.max();
      rest[k] = parts.rest(max[k]);
    }
    subtrahends.set(max, rest, used);
    for (std::int64_t k = 0; k < used; ++k) {
      parts.select(first + k);
      parts.finish(subtrahends.high[k], subtrahends.low[k]);
    }
  }
}

}  // namespace dmlops::DMLOPS_TARGET
