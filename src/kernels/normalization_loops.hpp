// Batch normalization's loops over dense rows, which are compiled for each activation.
#pragma once

#include <limits>

#include "kernels/normalization_channels.hpp"
#include "kernels/stream.hpp"

namespace dmlops::DMLOPS_TARGET {

// Should several rows that share parameters go together? The parameters take more time to read than
// the input. Beyond the second cache, memory hides that in float32, and one row after the other is
// what a processor reads ahead.
template <class T, class Out>
bool reads_parameters_once(const Tile<T, Out>& tile) {
  constexpr std::int64_t kCached = 2 << 20;  // bytes
  constexpr std::int64_t kMost = std::is_same_v<T, float16>
                                     ? std::numeric_limits<std::int64_t>::max()
                                     : kCached / std::int64_t{sizeof(T) + sizeof(Out)};
  return !tile.non_temporal && tile.length * tile.count <= kMost;
}

// The loops of one activation, `act`.
template <class T, class Out>
struct NormalizationLoops {
  using Part = Tile<T, Out>;

  // Rows each of which has the same parameters throughout: the first's, or in turn the next's.
  void (*constant)(const Part& rows, const Channels<T>& channels, bool in_turn, const void* act);
  // The latter, of a vector at least, where rows follow one another.
  void (*images)(const Part& rows, const Channels<T>& channels, const void* act);
  // Rows with parameters of their own that lie dense in `operands`, at least a vector of them.
  void (*dense)(const Part& rows, const Rows& operands, float epsilon, const void* act);
  // Rows that share parameters, those of each column from `first` on.
  void (*columns)(const Part& rows, const Channels<T>& channels, std::int64_t first,
                  const void* act);
  // Whole lines, past the caches: elements whose parameters recur after `period`, from `column` on.
  void (*periodic)(const Part& lines, const Channels<T>& channels, std::int64_t column,
                   std::int64_t period, const void* act);
};

// They copy the activation: no part of it is read again after a store.
template <class T, class Out, class Act>
struct ActivatedLoops {
  using Part = Tile<T, Out>;

  static void constant(const Part& rows, const Channels<T>& channels, bool in_turn,
                       const void* given) {
    const Act act = *static_cast<const Act*>(given);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const auto parameters = channels.throughout(in_turn ? r : 0);
      stream<f32x, 2>(
          rows.output_row(r), rows.input_row(r), rows.length,
          [&](f32x x, std::int64_t)
              DMLOPS_LAMBDA_INLINE { return canonical_nan(act(parameters.normalize(x))); },
          rows.non_temporal);
    }
  }

  static void images(const Part& rows, const Channels<T>& channels, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    constexpr std::int64_t lanes = kLanes<f32x>;
    Out* const output = rows.output_row(0);
    const T* const input = rows.input_row(0);
    const std::int64_t length = rows.length, last = length * rows.count - lanes;
    const auto normalized = [&](const auto& parameters, std::int64_t i) DMLOPS_LAMBDA_INLINE {
      return canonical_nan(act(parameters.normalize(load<f32x>(input + i))));
    };
    // As in stream(), the ends overlap their neighbours, and so are computed first and stored last.
    const f32x head = normalized(channels.throughout(0), 0);
    const f32x tail = normalized(channels.throughout(rows.count - 1), last);
    const std::int64_t begin = distance_to_alignment<f32x>(output) % lanes;
    // In vectors aligned in the output, some of which go on into the next row: images of few pixels
    // have few others, and past the caches a line that two rows share would be read again.
    // write(first, end, result): output[i] = result(i), for whole vectors.
    const auto write_all = [&](const auto& write) DMLOPS_LAMBDA_INLINE {
      auto parameters = channels.throughout(0);
      std::int64_t i = begin, end = length;
      const auto result = [&](std::int64_t at)
                              DMLOPS_LAMBDA_INLINE { return normalized(parameters, at); };
      for (std::int64_t k = 0;; end += length) {
        const std::int64_t whole = i + (end - i) / lanes * lanes;
        write(i, whole, result);
        i = whole;
        if (++k == rows.count) break;
        const auto next = channels.throughout(k);
        if (i < end) {
          parameters.take_from(next, end - i);
          write(i, i + lanes, result);
          i += lanes;
        }
        parameters = next;
      }
    };
    if (rows.non_temporal) {
      write_all([&](std::int64_t i, std::int64_t end, const auto& result)
                    DMLOPS_LAMBDA_INLINE { store_lines<f32x>(output, input, i, end, result); });
    } else {
      write_all([&](std::int64_t i, std::int64_t end, const auto& result) DMLOPS_LAMBDA_INLINE {
        for (; i < end; i += lanes) store(output + i, result(i));
      });
    }
    store(output, head);
    store(output + last, tail);
  }

  // Straight from memory, and to it but where that makes the reading wait.
  static void dense(const Part& rows, const Rows& operands, float epsilon, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    for (std::int64_t r = 0; r < rows.count; ++r) dense_row(rows, r, operands, epsilon, act);
  }

  static void columns(const Part& rows, const Channels<T>& channels, std::int64_t first,
                      const void* given) {
    const Act act = *static_cast<const Act*>(given);
    constexpr std::int64_t kTogether = 4, lanes = kLanes<f32x>;
    // Not where vectors that are aligned in one row are not in the next.
    const bool together =
        reads_parameters_once(rows) && rows.output_pitch % (lanes * std::int64_t{sizeof(Out)}) == 0;
    std::int64_t r = 0;
    for (; together && r + kTogether <= rows.count; r += kTogether) {
      Out* outputs[kTogether];
      const T* inputs[kTogether];
      for (std::int64_t k = 0; k < kTogether; ++k) {
        outputs[k] = rows.output_row(r + k);
        inputs[k] = rows.input_row(r + k);
      }
      const std::int64_t begin =
          least(distance_to_alignment<f32x>(outputs[0]) % lanes, rows.length);
      const std::int64_t end = begin + (rows.length - begin) / lanes * lanes;
      for (std::int64_t i = begin; i < end; i += lanes) {
        const auto parameters = channels[first + i];
        // All are read before any is written: where the rows are a multiple of 4 KiB apart,
        // processors take the one for the other.
        f32x results[kTogether];
        for (std::int64_t k = 0; k < kTogether; ++k)
          results[k] = parameters.normalize(load<f32x>(inputs[k] + i));
        for (std::int64_t k = 0; k < kTogether; ++k)
          store(outputs[k] + i, canonical_nan(act(results[k])));
      }
      if (begin == 0 && end == rows.length) continue;
      for (std::int64_t k = 0; k < kTogether; ++k) {
        end_of_row(outputs[k], inputs[k], begin, channels, first, act);
        end_of_row(outputs[k] + end, inputs[k] + end, rows.length - end, channels, first + end,
                   act);
      }
    }
    for (; r < rows.count; ++r)
      varying(rows.output_row(r), rows.input_row(r), rows.length, channels, first, act,
              rows.non_temporal);
  }

  static void periodic(const Part& lines, const Channels<T>& channels, std::int64_t column,
                       std::int64_t period, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    constexpr std::int64_t lanes = kLanes<f32x>;
    Out* const output = lines.output_row(0);
    const T* const input = lines.input_row(0);
    for (std::int64_t i = 0; i < lines.length;) {
      const std::int64_t vectors = (period - column + lanes - 1) / lanes;
      const std::int64_t end = least(i + vectors * lanes, lines.length);
      store_lines<f32x>(output, input, i, end, [&](std::int64_t j) DMLOPS_LAMBDA_INLINE {
        const auto parameters = channels[column + j - i];
        return canonical_nan(act(parameters.normalize(load<f32x>(input + j))));
      });
      column += end - i - period;
      i = end;
    }
  }

 private:
  DMLOPS_INLINE static void dense_row(const Part& rows, std::int64_t r, const Rows& operands,
                                      float epsilon, const Act& act) {
    const auto operand = [&](int k) {
      return reinterpret_cast<const T*>(operands.data[k] + (rows.row + r) * operands.pitch[k]) +
             rows.column;
    };
    const T *const mean = operand(kMean), *const variance = operand(kVariance);
    const T *const scale = operand(kScale), *const bias = operand(kBias);
    Out* const output = rows.output_row(r);
    const T* const input = rows.input_row(r);
    const f32x epsilons = splat<f32x>(epsilon);
    // Would a loop wait for what it has written? It goes the way that suits the input; parameters
    // can lie on the output's other side.
    const bool down = goes_down(output, input);
    const auto waits = [=](const T* read) DMLOPS_LAMBDA_INLINE {
      return down ? is_just_beyond(read, output) : is_just_beyond(output, read);
    };
    const bool buffered = !rows.non_temporal && rows.length >= kUnalignedVectors * kLanes<f32x> &&
                          (waits(mean) || waits(variance) || waits(scale) || waits(bias));
    constexpr std::int64_t kPart = 1024;
    alignas(kVectorBytes) Out buffer[kPart];
    for (std::int64_t begin = 0, count = rows.length; begin < rows.length; begin += count) {
      count = rows.length - begin;
      if (buffered && count > kPart)  // a vector at least is left for the next part
        count = count < kPart + kLanes<f32x> ? kPart - kLanes<f32x> : kPart;
      stream<f32x, 1>(
          buffered ? buffer : output + begin, input + begin, count,
          [&](f32x x, std::int64_t at) DMLOPS_LAMBDA_INLINE {
            const std::int64_t i = begin + at;
            return canonical_nan(
                act(normalized<T>(x, load<f32x>(mean + i), load<f32x>(variance + i),
                                  load<f32x>(scale + i), load<f32x>(bias + i), epsilons)));
          },
          rows.non_temporal);
      if (buffered)
        std::memcpy(output + begin, buffer, static_cast<std::size_t>(count) * sizeof(Out));
    }
  }

  // One row with parameters of its own for each element, those from `first` on.
  DMLOPS_INLINE static void varying(Out* output, const T* input, std::int64_t length,
                                    const Channels<T>& channels, std::int64_t first, const Act& act,
                                    bool non_temporal = false) {
    stream<f32x, 1>(
        output, input, length,
        [&](f32x x, std::int64_t i)
            DMLOPS_LAMBDA_INLINE { return canonical_nan(act(channels[first + i].normalize(x))); },
        non_temporal);
  }

  // What is left at the ends of whole vectors. Not inlined: with `act` by value, so that it may
  // stay in registers elsewhere.
  DMLOPS_NO_INLINE static void end_of_row(Out* output, const T* input, std::int64_t length,
                                          const Channels<T>& channels, std::int64_t first,
                                          Act act) {
    if (length > 0) varying(output, input, length, channels, first, act);
  }
};

}  // namespace dmlops::DMLOPS_TARGET
