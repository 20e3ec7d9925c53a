// Batch normalization's loops over dense blocks.
#pragma once

#include "kernels/elementwise/activation_rows.hpp"
#include "kernels/normalization/normalization_channels.hpp"

namespace dmlops::DMLOPS_TARGET {

// The loops of batch normalization with a fused activation, the functor `act`. The loops over rows
// are null for long formulas, which are applied to normalized elements in a buffer, so that they
// are compiled once instead of in each loop.
template <class T>
struct NormalizationLoops {
  // Parameters are constant along a row, and shared by all rows unless `own`.
  void (*by_row)(const Block& rows, const Channels<T>& channels, bool own, const void* act);
  void (*by_row_streaming)(const Block& rows, const Channels<T>& channels, bool own,
                           const void* act);
  // Parameters vary along a row, and are shared by all rows.
  void (*by_element)(const Block& rows, const Channels<T>& channels, const void* act);
  Transform activate;  // from float32 elements; null: no activation
};

// Loops that write elements of type Out. The activation is copied, so that stores cannot alias it.
template <class T, class Out, class Act>
struct ActivatedLoops {
  template <bool kStreaming = false>
  static void by_row(const Block& rows, const Channels<T>& channels, bool own, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const auto parameters = channels.throughout(own ? r : 0);
      const auto formula = [&](f32x x, auto...) DMLOPS_LAMBDA_INLINE {
        return canonical_nan(act(parameters.normalize(x)));
      };
      if constexpr (kStreaming) {
        stream_row<f32x>(output_row(rows, r), input_row(rows, r), rows.length, formula);
      } else {
        transform_row<f32x, 1>(output_row(rows, r), input_row(rows, r), rows.length, formula);
      }
    }
  }

  static void by_element(const Block& rows, const Channels<T>& channels, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    std::int64_t r = 0;
    if (!kForSize && loads_parameters_once(rows)) {
      for (; r + kTogether <= rows.count; r += kTogether) rows_together(rows, r, channels, act);
    }
    for (; r < rows.count; ++r) {
      transform_row<f32x, 1>(output_row(rows, r), input_row(rows, r), rows.length,
                             [&](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
                               return canonical_nan(act(channels[i].normalize(x)));
                             });
    }
  }

 private:
  static constexpr std::int64_t kTogether = 4, kLanesHere = kLanes<f32x>;

  DMLOPS_INLINE static Out* output_row(const Block& rows, std::int64_t r) {
    return reinterpret_cast<Out*>(rows.output_row(r));
  }
  DMLOPS_INLINE static const T* input_row(const Block& rows, std::int64_t r) {
    return reinterpret_cast<const T*>(rows.input_row(r));
  }

  // True if several rows share each load of parameters, which take more loads than the input. Not
  // for float32 rows beyond L2: memory latency hides the loads, and the hardware prefetcher follows
  // single rows better. Requires equal alignment of the rows.
  static bool loads_parameters_once(const Block& rows) {
    constexpr std::int64_t kCached = 2 << 20;  // bytes
    const bool cached = std::is_same_v<T, float16> ||
                        rows.length * rows.count * std::int64_t{sizeof(T) + sizeof(Out)} <= kCached;
    return cached && rows.output_offsets == nullptr &&
           rows.output_pitch % (kLanesHere * std::int64_t{sizeof(Out)}) == 0;
  }

  // Normalizes kTogether rows from row r on, loading each vector of parameters once.
  DMLOPS_INLINE static void rows_together(const Block& rows, std::int64_t r,
                                          const Channels<T>& channels, const Act& act) {
    Out* outputs[kTogether];
    const T* inputs[kTogether];
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kTogether; ++k) {
      outputs[k] = output_row(rows, r + k);
      inputs[k] = input_row(rows, r + k);
    }
    const auto edge = [&](std::int64_t i, std::int64_t count) DMLOPS_LAMBDA_INLINE {
      if (count == 0) return;
      const auto used = static_cast<std::size_t>(count);
      const auto parameters = channels[i];
      for (std::int64_t k = 0; k < kTogether; ++k) {
        const f32x x = load_partial<f32x>(inputs[k] + i, used);
        store_partial(outputs[k] + i, canonical_nan(act(parameters.normalize(x))), used);
      }
    };
    const std::int64_t begin =
        min(distance_to_alignment<f32x>(outputs[0]) % kLanesHere, rows.length);
    const std::int64_t end = begin + (rows.length - begin) / kLanesHere * kLanesHere;
    edge(0, begin);
    for (std::int64_t i = begin; i < end; i += kLanesHere) {
      const auto parameters = channels[i];
      // All loads precede the stores, against store-to-load aliasing of rows a multiple of 4 KiB
      // apart.
      f32x results[kTogether];
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < kTogether; ++k)
        results[k] = parameters.normalize(load<f32x>(inputs[k] + i));
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < kTogether; ++k)
        store(outputs[k] + i, canonical_nan(act(results[k])));
    }
    edge(end, rows.length - end);
  }
};

// Normalizes elements with parameters of their own, dense in the operands; rows are at least a
// vector long. The only loop that supports extreme parameters.
template <class T, class Out>
DMLOPS_NO_INLINE void normalize_unshared(const Block& rows, const Rows& operands, float epsilon) {
  const f32x epsilons = splat<f32x>(epsilon);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const auto operand = [&](int k) {
      return reinterpret_cast<const T*>(operands.data[k] + (rows.row + r) * operands.pitch[k]) +
             rows.column;
    };
    const T *const mean = operand(kMean), *const variance = operand(kVariance);
    const T *const scale = operand(kScale), *const bias = operand(kBias);
    transform_row<f32x, 1>(reinterpret_cast<Out*>(rows.output_row(r)),
                           reinterpret_cast<const T*>(rows.input_row(r)), rows.length,
                           [&](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
                             return canonical_nan(normalized<T>(
                                 x, load<f32x>(mean + i), load<f32x>(variance + i),
                                 load<f32x>(scale + i), load<f32x>(bias + i), epsilons));
                           });
  }
}

}  // namespace dmlops::DMLOPS_TARGET
