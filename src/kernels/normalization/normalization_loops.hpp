// Batch normalization's loops over dense blocks.
#pragma once

#include "kernels/blocks/transform_across.hpp"
#include "kernels/elementwise/activation_rows.hpp"
#include "kernels/normalization/normalization_channels.hpp"

namespace dmlops::DMLOPS_TARGET {

// The loops of batch normalization with a fused activation, the functor `act`. The loops over rows
// are null for long formulas, which are applied to normalized elements in a buffer, so that they
// are compiled once instead of in each loop.
template <class T>
struct NormalizationLoops {
  // Parameters are constant along a row, and shared by all rows unless `own`. Index 1: by
  // non-temporal stores.
  void (*by_row[2])(const Block& rows, const Channels<T>& channels, bool own, const void* act);
  // Parameters vary along a row, and are shared by all rows.
  void (*by_element[2])(const Block& rows, const Channels<T>& channels, const void* act);
  Transform activate;  // from float32 elements; null: no activation
};

// Loops that write elements of type Out. The activation is copied, so that stores cannot alias it.
template <class T, class Out, class Act>
struct ActivatedLoops {
  template <bool kStreaming = false>
  static void by_row(const Block& rows, const Channels<T>& channels, bool own, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    if (!kForSize && own && crosses_rows(rows, kStreaming))
      return across_rows<kStreaming>(rows, channels, act);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const auto parameters = channels.throughout(own ? r : 0);
      transform_one<kStreaming>(rows, r, [&](f32x x, std::int64_t) DMLOPS_LAMBDA_INLINE {
        return canonical_nan(act(parameters.normalize(x)));
      });
    }
  }

  template <bool kStreaming = false>
  static void by_element(const Block& rows, const Channels<T>& channels, const void* given) {
    const Act act = *static_cast<const Act*>(given);
    const bool together = !kForSize && !kStreaming && loads_parameters_once(rows);
    // The packed parameters repeat after the whole row.
    const bool crosses =
        !kForSize && rows.length == rows.rows->length && crosses_rows(rows, kStreaming);
    if (crosses && !(together && rows.length >= kLongRow && rows.length % kFloatLanes != 0))
      return across_shared_rows<kStreaming>(rows, channels, act);
    const bool prefetches = !kForSize && !kStreaming && !is_cached(rows);
    const auto normalize_row = [&](std::int64_t r) DMLOPS_LAMBDA_INLINE {
      const T* const next = input_row(rows, r) + kPrefetched;
      const Out* const next_target = output_row(rows, r) + kPrefetched;
      transform_one<kStreaming>(rows, r, [&](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
        if (prefetches) {
          __builtin_prefetch(next + i, 0, 2);
          __builtin_prefetch(next_target + i, 1, 2);
        }
        return canonical_nan(act(channels[i].normalize(x)));
      });
    };
    if (!together) {
      for (std::int64_t r = 0; r < rows.count; ++r) normalize_row(r);
      return;
    }
    // Consecutive rows would take unaligned stores if they differ in alignment.
    const std::int64_t distance = equally_aligned(rows);
    for (std::int64_t first = 0; first < rows.count; first += kTogether * distance) {
      for (std::int64_t r = first; r < min(first + distance, rows.count); ++r) {
        if (r + (kTogether - 1) * distance < rows.count) {
          rows_together(rows, r, distance, channels, act);
        } else {
          for (std::int64_t k = r; k < rows.count; k += distance) normalize_row(k);
        }
      }
    }
  }

 private:
  // kTogether rows share each load of parameters, in strips of kStrip vectors, whose parameters
  // stay in registers. Few rows in long strips suit the hardware prefetcher and the associativity
  // of L1, but take 32 registers. The loads of kAtOnce rows precede their stores, against
  // store-to-load aliasing of rows a multiple of 4 KiB apart, which long strips avoid.
  static constexpr bool kManyRegisters = kVectorBytes == 64;
  static constexpr std::int64_t kTogether = kManyRegisters ? 2 : 4, kStrip = kManyRegisters ? 4 : 1,
                                kAtOnce = kManyRegisters ? 1 : kTogether;
  // Shorter contiguous rows, and those of whole vectors, are computed by vectors that extend into
  // the next row.
  static constexpr std::int64_t kLongRow = 128;
  static constexpr std::int64_t kCached = std::int64_t{kManyRegisters ? 16 : 8} << 20;  // bytes

  DMLOPS_INLINE static Out* output_row(const Block& rows, std::int64_t r) {
    return reinterpret_cast<Out*>(rows.output[r]);
  }
  DMLOPS_INLINE static const T* input_row(const Block& rows, std::int64_t r) {
    return reinterpret_cast<const T*>(rows.inputs[0][r]);
  }

  struct Together {
    Out* outputs[kTogether];
    const T* inputs[kTogether];
  };
  // The rows at a distance from row r on.
  DMLOPS_INLINE static Together rows_from(const Block& rows, std::int64_t r,
                                          std::int64_t distance) {
    Together group;
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kTogether; ++k) {
      group.outputs[k] = output_row(rows, r + k * distance);
      group.inputs[k] = input_row(rows, r + k * distance);
    }
    return group;
  }

  static bool crosses_rows(const Block& rows, bool streaming) {
    return DMLOPS_TARGET::crosses_rows<f32x, Out, T>(rows, streaming);
  }

  // Normalizes contiguous rows with parameters of their own, by vectors that are aligned in the
  // output.
  template <bool kStreaming>
  DMLOPS_NO_INLINE static void across_rows(const Block& rows, const Channels<T>& channels,
                                           const Act act) {
    transform_across<kStreaming, f32x>(
        output_row(rows, 0), input_row(rows, 0), rows.length, rows.count,
        [&](std::int64_t r) DMLOPS_LAMBDA_INLINE { return channels.throughout(r); },
        [&](const auto& parameters, f32x x)
            DMLOPS_LAMBDA_INLINE { return canonical_nan(act(parameters.normalize(x))); });
  }

  // Likewise with parameters that vary along a row and are shared by all rows.
  template <bool kStreaming>
  DMLOPS_NO_INLINE static void across_shared_rows(const Block& rows, const Channels<T>& channels,
                                                  const Act act) {
    const std::int64_t length = rows.length, count = rows.count;
    const auto strips_from = [&](std::int64_t begin) DMLOPS_LAMBDA_INLINE {
      if (kStreaming || length % kFloatLanes != 0 || !is_cached(rows)) return begin;
      const std::int64_t whole = count - (begin > 0 ? 1 : 0);
      std::int64_t r = 0;
      for (; r + kTogether <= whole; r += kTogether)
        strips(rows_from(rows, r, 1), begin, begin + length, channels, act);
      return begin + r * length;
    };
    transform_across_columns<kStreaming, f32x>(
        output_row(rows, 0), input_row(rows, 0), length, count,
        [&](std::int64_t column, f32x x)
            DMLOPS_LAMBDA_INLINE { return canonical_nan(act(channels[column].normalize(x))); },
        strips_from);
  }

  template <bool kStreaming, class Formula>
  DMLOPS_INLINE static void transform_one(const Block& rows, std::int64_t r,
                                          const Formula& formula) {
    if constexpr (kStreaming) {
      stream_row<f32x>(output_row(rows, r), input_row(rows, r), rows.length, formula);
    } else {
      transform_row<f32x, 1>(output_row(rows, r), input_row(rows, r), rows.length, formula);
    }
  }

  // Elements ahead that rows beyond the caches prefetch, which the hardware prefetcher does not.
  static constexpr std::int64_t kPrefetched = 2048;
  static bool is_cached(const Block& rows) {
    const std::int64_t bytes =
        rows.rows->length * all_rows(*rows.rows) * std::int64_t{sizeof(T) + sizeof(Out)};
    return bytes <= kCached;
  }

  // True if several rows share each load of parameters, which take more loads than the input. Not
  // for rows beyond the caches: memory latency hides the loads, and the hardware prefetcher follows
  // single rows better. Requires whole vectors.
  static bool loads_parameters_once(const Block& rows) {
    return is_cached(rows) && rows.length >= kFloatLanes && rows.output.offsets == nullptr;
  }

  // Returns the distance of rows of equal alignment in the output.
  static std::int64_t equally_aligned(const Block& rows) {
    constexpr std::int64_t vector = kFloatLanes * std::int64_t{sizeof(Out)};
    const std::int64_t pitch = rows.output.pitch;
    return pitch == 0 ? 1 : max(vector / (pitch & -pitch), 1);
  }

  // Normalizes kTogether rows of equal alignment, at a distance from row r on.
  DMLOPS_INLINE static void rows_together(const Block& rows, std::int64_t r, std::int64_t distance,
                                          const Channels<T>& channels, const Act& act) {
    const Together group = rows_from(rows, r, distance);
    // As in transform_row(), the first and the last vector are computed first and stored last.
    f32x heads[kTogether], tails[kTogether];
    const auto normalize = [&](f32x* results, std::int64_t i) DMLOPS_LAMBDA_INLINE {
      const auto parameters = channels[i];
#pragma GCC unroll 16
      for (std::int64_t k = 0; k < kTogether; ++k)
        results[k] = canonical_nan(act(parameters.normalize(load<f32x>(group.inputs[k] + i))));
    };
    const std::int64_t last = rows.length - kFloatLanes;
    normalize(tails, last);
    std::int64_t i = 0;
    const bool short_row = rows.length <= kUnalignedVectors * kFloatLanes;
    if (!short_row) {
      normalize(heads, 0);
      i = distance_to_alignment<f32x>(group.outputs[0]);
    }
    strips(group, i, last, channels, act);
    for (std::int64_t k = 0; k < kTogether; ++k) {
      if (!short_row) store(group.outputs[k], heads[k]);
      store(group.outputs[k] + last, tails[k]);
    }
  }

  // Normalizes vectors of each row from element i on, until one reaches `end`.
  DMLOPS_INLINE static void strips(const Together& group, std::int64_t i, std::int64_t end,
                                   const Channels<T>& channels, const Act& act) {
    for (; i + (kStrip - 1) * kFloatLanes < end; i += kStrip * kFloatLanes)
      strip<kStrip>(group, i, channels, act);
    if constexpr (kStrip > 1) {
      for (; i < end; i += kFloatLanes) strip<1>(group, i, channels, act);
    }
  }

  // Normalizes kVectors vectors of each row from element i on.
  template <std::int64_t kVectors>
  DMLOPS_INLINE static void strip(const Together& group, std::int64_t i,
                                  const Channels<T>& channels, const Act& act) {
    typename Channels<T>::Vector parameters[kVectors];
#pragma GCC unroll 16
    for (std::int64_t v = 0; v < kVectors; ++v) parameters[v] = channels[i + v * kFloatLanes];
#pragma GCC unroll 16
    for (std::int64_t k = 0; k < kTogether; k += kAtOnce) {
      f32x results[kAtOnce][kVectors];
#pragma GCC unroll 16
      for (std::int64_t q = 0; q < kAtOnce; ++q)
#pragma GCC unroll 16
        for (std::int64_t v = 0; v < kVectors; ++v)
          results[q][v] =
              parameters[v].normalize(load<f32x>(group.inputs[k + q] + i + v * kFloatLanes));
#pragma GCC unroll 16
      for (std::int64_t q = 0; q < kAtOnce; ++q)
#pragma GCC unroll 16
        for (std::int64_t v = 0; v < kVectors; ++v)
          store(group.outputs[k + q] + i + v * kFloatLanes, canonical_nan(act(results[q][v])));
    }
  }
};

// Normalizes elements with parameters of their own, dense in the operands; rows are at least a
// vector long. The only loop that supports extreme parameters.
template <class T, class Out>
DMLOPS_NO_INLINE void normalize_unshared(const Block& rows, const Rows& operands, float epsilon) {
  const f32x epsilons = splat<f32x>(epsilon);
  for (std::int64_t r = 0; r < rows.count; ++r) {
    const auto operand = [&](int k) {
      return reinterpret_cast<const T*>(row_of(operands, k, rows.row + r)) + rows.column;
    };
    const T *const mean = operand(kMean), *const variance = operand(kVariance);
    const T *const scale = operand(kScale), *const bias = operand(kBias);
    transform_row<f32x, 1>(reinterpret_cast<Out*>(rows.output[r]),
                           reinterpret_cast<const T*>(rows.inputs[0][r]), rows.length,
                           [&](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
                             return canonical_nan(normalized<T>(
                                 x, load<f32x>(mean + i), load<f32x>(variance + i),
                                 load<f32x>(scale + i), load<f32x>(bias + i), epsilons));
                           });
  }
}

}  // namespace dmlops::DMLOPS_TARGET
