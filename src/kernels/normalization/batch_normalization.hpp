// Batch normalization: Act((x - Mean) * factor + Bias), factor = Scale / sqrt(Variance + Epsilon).
#pragma once

#include "kernels/normalization/normalization_loops.hpp"

namespace dmlops::DMLOPS_TARGET {

// Normalizes the blocks of a traversal: selects the loop, and packs the parameters.
template <class T>
class Normalization {
 public:
  Normalization(const Rows& rows, float epsilon, const NormalizationLoops<T>& loops,
                const void* act)
      : rows_(rows), epsilon_(epsilon), loops_(loops), act_(act) {
    for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
      along_ = along_ || rows.layout[k] != Layout::broadcast;
      own_ = own_ || (rows.count > 1 && !broadcasts_row(rows, k));
      dense_ = dense_ && rows.layout[k] == Layout::in_place;
    }
    // Unpacked parameters are loaded as whole vectors.
    dense_ = dense_ && (own_ || rows.count == 1) && rows.length >= kFloatLanes;
    if (along_ || own_ || rows.outer_rank == 0) return;
    const Loop& loop = rows.outer[0];
    for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
      iterations_.row_offsets[k] = nullptr;
      iterations_.pitch[k] = loop.strides[k];
      if (loop.strides[k] != 0) iterations_.count = loop.size;
    }
  }

  void traverse_rows() {
    // Non-temporal stores need rows of several cache lines, or vectors that cross them.
    const bool crosses =
        own_ != along_ && rows_.length >= kFloatLanes && is_contiguous(0) && is_contiguous(1);
    const bool streams = loops_.by_row[1] != nullptr && !dense_ && (rows_.length >= 256 || crosses);
    const Transform streaming = streams ? &normalize<true> : nullptr;
    traverse(rows_, {sizeof(T),
                     {&normalize<false>, nullptr, streaming},
                     this,
                     false,
                     1,
                     along_ && !own_ ? Channels<T>::kCapacity : 0});
  }

 private:
  template <bool kStreaming>
  static void normalize(const Block& block, const void* context) {
    // The traversal passes contexts as pointers to const, since formulas are constant.
    static_cast<Normalization*>(const_cast<void*>(context))->normalize_chunks(block, kStreaming);
  }

  void normalize_chunks(const Block& block, bool streaming) {
    const std::int64_t capacity = Channels<T>::kCapacity;
    // The maximum number of elements of a chunk.
    const bool buffered = dense_ ? loops_.activate != nullptr : is_long();
    const std::int64_t limit = buffered ? capacity : std::int64_t{1} << 62;
    const std::int64_t largest = along_ && !dense_ ? min(capacity, limit) : limit;
    // Rows of a block share the packed parameters of a chunk's columns.
    for (std::int64_t column = 0, length; column < block.length; column += length) {
      length = min(largest, block.length - column);
      const bool shared = !own_ || (dense_ && length >= kFloatLanes);
      const std::int64_t together = shared ? block.count : along_ ? 1 : capacity;
      const std::int64_t count = min(min(block.count, limit / length), together);
      if (length == block.length && count == block.count) return normalize_chunk(block, streaming);
      for (std::int64_t r = 0; r < block.count; r += count)
        normalize_chunk(part(block, column, r, length, min(count, block.count - r)), streaming);
    }
  }

  // True if the operand's rows follow one another.
  bool is_contiguous(int k) const {
    return rows_.layout[k] == Layout::in_place && are_contiguous(rows_, k, sizeof(T));
  }

  static Block part(const Block& block, std::int64_t column, std::int64_t row, std::int64_t length,
                    std::int64_t count) {
    Block part = block;
    part.row += row;
    part.column += column;
    part.length = length;
    part.count = count;
    part.inputs[0] = block.inputs[0].from(row, column * std::int64_t{sizeof(T)});
    part.output = block.output.from(row, column * std::int64_t{sizeof(T)});
    return part;
  }

  // Returns the number of elements between an aligned vector and the begin of the output's row.
  static std::int64_t past_vector(const Block& chunk) {
    const auto address = reinterpret_cast<std::uintptr_t>(chunk.output.data) / sizeof(T);
    return (static_cast<std::int64_t>(address) - chunk.column) & (kFloatLanes - 1);
  }

  bool is_long() const { return loops_.by_row[0] == nullptr; }

  DMLOPS_INLINE void normalize_chunk(const Block& chunk, bool streaming) {
    const std::int64_t length = chunk.length;
    if (dense_ && length >= kFloatLanes) return apply_unshared(chunk, *chunk.rows);
    // Parameters that all rows share are packed once for the whole row, if they fit; parameters of
    // an iteration of the outer loop, once for many iterations.
    const bool whole = along_ && !own_ && rows_.length <= Channels<T>::kCapacity;
    const Rows* operands = chunk.rows;
    std::int64_t row = own_ ? chunk.row : 0, count = own_ ? chunk.count : 1, chosen = 0;
    if (along_) {
      chosen = whole ? chunk.column : 0;
      count = whole ? rows_.length : length;
    } else if (iterations_.count > 0) {
      const std::int64_t iteration = chunk.rows->outer_index;
      for (int k = kMean; k < kBatchNormalizationEnd; ++k)
        iterations_.data[k] = chunk.rows->data[k] - iteration * iterations_.pitch[k];
      operands = &iterations_;
      chosen = iteration % Channels<T>::kCapacity;
      row = iteration - chosen;
      count = min(Channels<T>::kCapacity, iterations_.count - row);
    }
    const std::int64_t past = along_ && !is_long() ? past_vector(chunk) : 0;
    const bool usual = channels_.pack_parameters(
        *operands, row, along_ && !whole ? chunk.column : 0, count, !along_, past, epsilon_);
    channels_.choose(chosen);
    if (!usual) {
      normalize_extreme(chunk);
    } else if (is_long()) {
      normalize_long(chunk);
    } else if (along_) {
      loops_.by_element[streaming](chunk, channels_, act_);
    } else {
      loops_.by_row[streaming](chunk, channels_, own_, act_);
    }
  }

  // Normalizes elements with parameters of their own.
  DMLOPS_NO_INLINE void apply_unshared(const Block& chunk, const Rows& operands) const {
    if (loops_.activate == nullptr) return normalize_unshared<T, T>(chunk, operands, epsilon_);
    through_buffer(chunk, [&](const Block& normalized) {
      normalize_unshared<T, float>(normalized, operands, epsilon_);
    });
  }

  DMLOPS_NO_INLINE void normalize_long(const Block& chunk) const {
    using Loops = ActivatedLoops<T, float, Identity>;
    through_buffer(chunk, [&](const Block& normalized) {
      const Identity identity({});
      if (along_) {
        Loops::by_element(normalized, channels_, &identity);
      } else {
        Loops::by_row(normalized, channels_, own_, &identity);
      }
    });
  }

  // Normalizes a chunk into a buffer, and applies the activation to the buffer.
  template <class Loop>
  DMLOPS_INLINE void through_buffer(const Block& chunk, const Loop& normalize) const {
    alignas(kVectorBytes) float buffer[Channels<T>::kCapacity];
    Block normalized = chunk;
    normalized.output = {reinterpret_cast<char*>(buffer),
                         chunk.length * std::int64_t{sizeof(float)}};
    normalize(normalized);
    Block activated = chunk;
    activated.inputs[0] = {normalized.output.data, normalized.output.pitch};
    if (chunk.output.is_contiguous(chunk.length * std::int64_t{sizeof(T)})) {
      activated.length *= chunk.count;
      activated.count = 1;
    }
    loops_.activate(activated, act_);
  }

  // Packs the parameters into dense rows for normalize_unshared(), which supports extreme ones.
  DMLOPS_NO_INLINE void normalize_extreme(const Block& chunk) {
    constexpr std::int64_t kChunk = 512;
    alignas(kVectorBytes) T packed[kBatchNormalizationEnd][kChunk] = {};
    Rows operands = *chunk.rows;
    for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
      operands.data[k] = reinterpret_cast<char*>(packed[k]);
      operands.row_offsets[k] = nullptr;
    }
    for (std::int64_t r = 0; r < chunk.count; ++r) {
      Block slice = chunk;
      slice.count = 1;
      slice.row = slice.column = 0;  // relative to the packed parameters
      for (std::int64_t column = 0; column < chunk.length; column += kChunk) {
        slice.length = min(kChunk, chunk.length - column);
        slice.inputs[0] = {chunk.inputs[0][r] + column * std::int64_t{sizeof(T)}};
        slice.output = {chunk.output[r] + column * std::int64_t{sizeof(T)}};
        for (int k = kMean; k < kBatchNormalizationEnd; ++k) {
          pack<Bits<T>>(reinterpret_cast<char*>(packed[k]), 0, slice.length, 1,
                        source_of(*chunk.rows, k, chunk.row + r, chunk.column + column));
        }
        apply_unshared(slice, operands);
      }
    }
  }

  const Rows& rows_;
  float epsilon_;
  const NormalizationLoops<T>& loops_;
  const void* act_;
  bool along_ = false;  // true if parameters vary along a row
  bool own_ = false;    // true if parameters vary across rows
  bool dense_ = true;   // true if parameters are dense in the operands and used once
  // The parameters as rows, if they vary along the innermost outer loop but not within the rows.
  Rows iterations_;
  Channels<T> channels_;
};

constexpr std::int64_t kManyShared = 16;  // rows that are enough to share packed parameters

// True if the iterations of the outer loops, of few rows each, have the same parameters, which vary
// along the rows and are too many for Channels.
template <class T>
bool repeats_parameters(const Rows& rows) {
  if (rows.length <= Channels<T>::kCapacity || rows.count >= kManyShared || rows.outer_rank == 0)
    return false;
  bool along = false;
  for (int k = 0; k < kBatchNormalizationEnd; ++k) {
    if (rows.offsets[k] != nullptr) return false;
    if (k < kMean) continue;
    along = along || rows.layout[k] != Layout::broadcast;
    if (rows.count > 1 && !broadcasts_row(rows, k)) return false;
    for (int d = 0; d < rows.outer_rank; ++d) {
      if (rows.outer[d].strides[k] != 0) return false;
    }
  }
  return along;
}

template <class T>
DMLOPS_NO_INLINE void normalize_rows(const Rows& rows, float epsilon,
                                     const NormalizationLoops<T>& loops, const void* act) {
  if (!repeats_parameters<T>(rows))
    return Normalization<T>(rows, epsilon, loops, act).traverse_rows();
  // By columns, so that parameters are packed once for all iterations. For is_cached(), the columns
  // are an array of their own: what follows them in a row is needed much later.
  Rows columns = rows;
  for (std::int64_t first = 0; first < rows.length; first += columns.length) {
    columns.length = min(Channels<T>::kCapacity, rows.length - first);
    for (int k = 0; k < kBatchNormalizationEnd; ++k)
      columns.data[k] = rows.data[k] + first * rows.step[k];
    Normalization<T>(columns, epsilon, loops, act).traverse_rows();
  }
}

template <class T, class Act>
constexpr NormalizationLoops<T> normalization_loops() {
  using Loops = ActivatedLoops<T, T, Act>;
  constexpr Transform activate = &transform<T, float, f32x, kUnrolled<Act>, Activate<Act>>;
  if constexpr (kIsLong<Act>) {
    return {{nullptr, nullptr}, {nullptr, nullptr}, activate};
  } else if constexpr (kForSize) {
    return {{&Loops::template by_row<>, nullptr},
            {&Loops::template by_element<>, nullptr},
            std::is_same_v<Act, Identity> ? nullptr : activate};
  } else {
    return {{&Loops::template by_row<>, &Loops::template by_row<true>},
            {&Loops::template by_element<>, &Loops::template by_element<true>},
            std::is_same_v<Act, Identity> ? nullptr : activate};
  }
}

template <class T, class Act>
void batch_normalization(const Rows& rows, const void* parameters) {
  static constexpr NormalizationLoops<T> loops = normalization_loops<T, Act>();
  const auto& p = *static_cast<const BatchNormalizationParameters*>(parameters);
  const Activate<Act> act(p.activation);
  normalize_rows<T>(rows, p.epsilon, loops, &act);
}

}  // namespace dmlops::DMLOPS_TARGET
