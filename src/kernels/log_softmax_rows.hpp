// log_softmax along rows: a group's elements are neighbours in memory, and 64 of them fill the
// lanes of the sum.
#pragma once

#include "kernels/log_softmax_group.hpp"

namespace dmlops::DMLOPS_TARGET {

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
  float result = all[0];
  for (int lane = 1; lane < kLanes<f32x>; ++lane)
    result = running_max(result, static_cast<float>(all[lane]));
  return result;
}

struct RowSum {
  alignas(kVectorBytes) double lanes[kSumLanes] = {};
  std::int64_t maxima = 0;

  // Adds a whole number of blocks, or the last elements of a group.
  template <bool kRefined, class T>
  void add(const T* x, std::int64_t count, float maximum) {
    const f32x max = splat<f32x>(maximum);
    for (std::int64_t begin = 0; begin < count; begin += kSumBlock) {
      const std::int64_t left = count - begin;
      add_block<kRefined>(x + begin, least(left, kSumBlock), max);
    }
  }

  // The sum of all but one maximum.
  double rest() {
    int half = kSumLanes / 2;
    for (; half >= kLanes<f64x>; half /= 2) {
      for (int j = 0; j < half; j += kLanes<f64x>) {
        store(lanes + j, load<f64x>(lanes + j) + load<f64x>(lanes + j + half));
      }
    }
    for (; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) lanes[j] += lanes[j + half];
    }
    return lanes[0] * 0x1p-64 + static_cast<double>(maxima - 1);
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
      alignas(kVectorBytes) float stored[kWidth];
      for (int k = 0; k < kRegisters; ++k) store(stored + k * kLanes<f32x>, sums[k]);
      for (int k = 0; k < kWidth; k += kLanes<f64x>) {
        store(lanes + lane + k, load<f64x>(lanes + lane + k) + to_double(stored + k));
      }
    }
    for (int i = 0; i < kLanes<f32x>; ++i) maxima -= minus_maxima[i];
  }
};

template <class T>
void log_softmax_along_rows(const Groups& groups, const GroupShape& in, const GroupShape& out) {
  constexpr std::int64_t size = sizeof(T);
  constexpr std::int64_t kPart = 4 * kSumBlock;
  alignas(kVectorBytes) char buffer[kPart * size];
  const std::int64_t count = in.count(), stride = in.step(), output_stride = out.step();

  for (std::int64_t g = 0; g < groups.count; ++g) {
    const char* const input = groups.input + g * groups.input_step;
    char* const output = groups.output + g * groups.output_step;
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      if (in.dense(size)) return reinterpret_cast<const T*>(input + begin * size);
      in.for_each_run(begin, end, [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
        pack_row<Bits<T>>(buffer + i * size, length, input + offset, stride);
      });
      return reinterpret_cast<const T*>(buffer);
    };
    const auto for_each_part = [count](const auto& visit) {
      for (std::int64_t begin = 0; begin < count; begin += kPart)
        visit(begin, count - begin < kPart ? count : begin + kPart);
    };

    float max = negative_infinity<float>();
    for_each_part([&](std::int64_t begin, std::int64_t end) {
      max = row_max(part(begin, end), end - begin, max);
    });
    const auto rest_of = [&](auto refined) {
      RowSum sum;
      for_each_part([&](std::int64_t begin, std::int64_t end) {
        sum.add<decltype(refined)::value>(part(begin, end), end - begin, max);
      });
      return sum.rest();
    };
    double rest = rest_of(std::false_type());
    if (std::is_same_v<T, float> && rest < rest_to_refine(count)) rest = rest_of(std::true_type());
    const f32x maximum = splat<f32x>(max),
               log_sum = splat<f32x>(static_cast<float>(log1p(splat<f64x>(rest))[0]));
    for_each_part([&](std::int64_t begin, std::int64_t end) {
      const T* x = part(begin, end);
      T* y = reinterpret_cast<T*>(out.dense(size) ? output + begin * size : buffer);
      stream<f32x, 2>(y, x, end - begin, [&](f32x v, std::int64_t) DMLOPS_LAMBDA_INLINE {
        return log_softmax_result(v, maximum, log_sum);
      });
      if (out.dense(size)) return;
      out.for_each_run(begin, end, [&](std::int64_t offset, std::int64_t i, std::int64_t length) {
        unpack<Bits<T>>(output + offset, output_stride, 0, buffer + i * size, length, 1);
      });
    });
  }
}

}  // namespace dmlops::DMLOPS_TARGET
