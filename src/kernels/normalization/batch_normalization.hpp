// Batch normalization: Act((x - Mean) * factor + Bias), factor = Scale / sqrt(Variance + Epsilon).
#pragma once

#include "kernels/normalization/normalization_loops.hpp"

namespace dmlops::DMLOPS_TARGET {

// Normalizes the blocks of a traversal: selects the loop, and packs the parameters.
template <class T>
class Normalization {
 public:
  // `largest` is the maximum number of elements of a chunk.
  Normalization(const Rows& rows, float epsilon, const NormalizationLoops<T>& loops,
                const void* act, std::int64_t largest)
      : rows_(rows), epsilon_(epsilon), loops_(loops), act_(act), largest_(largest) {
    for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
      along_ = along_ || rows.layout[k] != Layout::broadcast;
      own_ = own_ || (rows.count > 1 && rows.pitch[k] != 0);
      dense_ = dense_ && rows.layout[k] == Layout::in_place;
    }
    // Unpacked parameters are loaded as whole vectors.
    dense_ = dense_ && (own_ || rows.count == 1) && rows.length >= kLanes<f32x>;
  }

  void traverse_rows() {
    // Non-temporal stores need rows of several cache lines.
    const bool streams = loops_.by_row_streaming != nullptr && !along_ && rows_.length >= 256;
    const Transform streaming = streams ? &normalize<true> : nullptr;
    traverse(rows_, {sizeof(T),
                     {&normalize<false>, nullptr, streaming},
                     this,
                     false,
                     along_ && !own_ ? Channels<T>::kCapacity : 0});
  }

 private:
  template <bool kStreaming>
  static void normalize(const Block& block, const void* context) {
    // The traversal passes contexts as pointers to const, since formulas are constant.
    static_cast<Normalization*>(const_cast<void*>(context))->normalize_chunks(block, kStreaming);
  }

  void normalize_chunks(const Block& block, bool streaming) {
    const std::int64_t capacity = Channels<T>::kCapacity, limit = dense_ ? capacity : largest_;
    const std::int64_t largest = along_ ? min(capacity, limit) : limit;
    // Rows of a block share the packed parameters of a chunk's columns.
    for (std::int64_t column = 0, length; column < block.length; column += length) {
      length = min(largest, block.length - column);
      const bool shared = !own_ || (dense_ && length >= kLanes<f32x>);
      const std::int64_t together = shared ? block.count : along_ ? 1 : capacity;
      const std::int64_t count = min(min(block.count, limit / length), together);
      if (length == block.length && count == block.count) return normalize_chunk(block, streaming);
      for (std::int64_t r = 0; r < block.count; r += count)
        normalize_chunk(part(block, column, r, length, min(count, block.count - r)), streaming);
    }
  }

  static Block part(const Block& block, std::int64_t column, std::int64_t row, std::int64_t length,
                    std::int64_t count) {
    Block part = block;
    part.row += row;
    part.column += column;
    part.length = length;
    part.count = count;
    part.input += row * block.input_pitch + column * std::int64_t{sizeof(T)};
    part.output += column * std::int64_t{sizeof(T)};
    if (block.output_offsets != nullptr) {
      part.output_offsets += row;
    } else {
      part.output += row * block.output_pitch;
    }
    return part;
  }

  DMLOPS_INLINE void normalize_chunk(const Block& chunk, bool streaming) {
    const std::int64_t length = chunk.length;
    const std::int64_t parameter_row = own_ ? chunk.row : 0;
    if (dense_ && length >= kLanes<f32x>) {
      loops_.unshared(chunk, *chunk.rows, epsilon_, act_);
    } else if (!channels_.pack_parameters(*chunk.rows, parameter_row, along_ ? chunk.column : 0,
                                          along_ ? length
                                          : own_ ? chunk.count
                                                 : 1,
                                          !along_, epsilon_)) {
      normalize_extreme(chunk);
    } else if (along_) {
      loops_.by_element(chunk, channels_, act_);
    } else {
      (streaming ? loops_.by_row_streaming : loops_.by_row)(chunk, channels_, own_, act_);
    }
  }

  // Packs the parameters into dense rows for loops_.unshared, which supports extreme parameters.
  DMLOPS_NO_INLINE void normalize_extreme(const Block& chunk) {
    constexpr std::int64_t kChunk = 512;
    alignas(kVectorBytes) T packed[kBatchNormalizationEnd][kChunk] = {};
    Rows operands = *chunk.rows;
    for (int k = kMean; k < kBatchNormalizationEnd; ++k)
      operands.data[k] = reinterpret_cast<char*>(packed[k]);
    for (std::int64_t r = 0; r < chunk.count; ++r) {
      Block slice = chunk;
      slice.count = 1;
      slice.row = slice.column = 0;  // relative to the packed parameters
      for (std::int64_t column = 0; column < chunk.length; column += kChunk) {
        slice.length = min(kChunk, chunk.length - column);
        slice.input = chunk.input_row(r) + column * std::int64_t{sizeof(T)};
        slice.output = chunk.output_row(r) + column * std::int64_t{sizeof(T)};
        slice.output_offsets = nullptr;
        for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
          pack<Bits<T>>(reinterpret_cast<char*>(packed[k]), 0, slice.length, 1,
                        source_of(*chunk.rows, k, chunk.row + r, chunk.column + column));
        }
        loops_.unshared(slice, operands, epsilon_, act_);
      }
    }
  }

  const Rows& rows_;
  float epsilon_;
  const NormalizationLoops<T>& loops_;
  const void* act_;
  std::int64_t largest_;
  bool along_ = false;  // true if parameters vary along a row
  bool own_ = false;    // true if parameters vary across rows
  bool dense_ = true;   // true if parameters are dense in the operands and used once
  Channels<T> channels_;
};

template <class T>
DMLOPS_NO_INLINE void normalize_rows(const Rows& rows, float epsilon,
                                     const NormalizationLoops<T>& loops, const void* act,
                                     std::int64_t largest) {
  Normalization<T>(rows, epsilon, loops, act, largest).traverse_rows();
}

template <class T, class Act>
void batch_normalization(const Rows& rows, const void* parameters) {
  const auto& p = *static_cast<const BatchNormalizationParameters*>(parameters);
  // Long formulas, and all with parameters of each element, are applied to a buffer.
  using Own = ActivatedLoops<T, T, Act>;
  using Buffered = BufferedLoops<T, Act>;
  const Activate<Act> act(p.activation);
  if constexpr (kIsLong<Act>) {
    static constexpr NormalizationLoops<T> loops = {&Buffered::by_row, nullptr,
                                                    &Buffered::by_element, &Buffered::unshared};
    normalize_rows<T>(rows, p.epsilon, loops, &act, Channels<T>::kCapacity);
  } else {
    using Unshared = std::conditional_t<std::is_same_v<Act, Identity>, Own, Buffered>;
    static constexpr NormalizationLoops<T> loops = {&Own::template by_row<>,
                                                    &Own::template by_row<true>, &Own::by_element,
                                                    &Unshared::unshared};
    normalize_rows<T>(rows, p.epsilon, loops, &act, std::int64_t{1} << 62);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
