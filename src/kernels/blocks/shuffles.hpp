// Packs patterns of elements by shuffles of windows of memory.
#pragma once

#include "kernels/blocks/elements.hpp"
#include "kernels/kernel.hpp"
#include "kernels/simd/convert.hpp"
#include "kernels/simd/shuffle.hpp"

namespace dmlops::DMLOPS_TARGET {

// The offsets of `count` elements, which are repeated every `step` bytes, or at the entries of an
// offset table (step 0).
struct Pattern {
  const std::int64_t* offsets;
  std::int64_t count, step;
};

#if defined(DMLOPS_HAS_BYTE_SHUFFLE)
constexpr int kMaxWindows = 8, kMaxVectors = 32;

// A vector of packed elements, each of which is selected from one of some windows of memory.
struct ShuffledVector {
  alignas(kVectorBytes) std::uint8_t index[kMaxWindows * 16];
  std::int64_t windows[kMaxWindows];  // their offsets
  std::uint32_t lanes[kMaxWindows];   // the elements from each, as a mask
  int count;                          // windows
};

// Shuffles the bytes of each window of 16, and combines the results.
struct ByteWindows {
  using Vector = Bytes16;
  static constexpr float kStore = 1, kWindow = 2;  // operations
  static constexpr std::int64_t kUnit = 1;  // bytes, of which positions in a window are multiples

  template <class U>
  DMLOPS_INLINE static void select(ShuffledVector& v, std::int64_t lane, std::int64_t position) {
    constexpr std::int64_t size = sizeof(U);
    for (std::int64_t b = 0; b < size; ++b)
      v.index[v.count * 16 + lane * size + b] = static_cast<std::uint8_t>(position + b);
  }

  template <int kWindows>
  struct Shuffle {
    Vector indices[kWindows];

    DMLOPS_INLINE explicit Shuffle(const ShuffledVector& v) {
#pragma GCC unroll 16
      for (int i = 0; i < kWindows; ++i) indices[i] = load<Vector>(v.index + 16 * i);
    }
    DMLOPS_INLINE Vector operator()(const char* source, const std::int64_t* windows) const {
      Vector result = shuffle_bytes(load_element<Vector>(source + windows[0]), indices[0]);
#pragma GCC unroll 16
      for (int i = 1; i < kWindows; ++i)
        result |= shuffle_bytes(load_element<Vector>(source + windows[i]), indices[i]);
      return result;
    }
  };
};

#if defined(__AVX512BW__)
// Shuffles the elements of each window into their lanes.
template <class U>
struct ElementWindows {
  using Vector = Vec<U>;
  static constexpr float kStore = 2, kWindow = 3;  // loads that cross cache lines take longer
  static constexpr std::int64_t kUnit = sizeof(U);

  template <class>
  DMLOPS_INLINE static void select(ShuffledVector& v, std::int64_t lane, std::int64_t position) {
    store_element(reinterpret_cast<char*>(v.index) + lane * kUnit,
                  static_cast<U>(position / kUnit));
  }

  template <int kWindows>
  struct Shuffle {
    Vector index;
    std::uint32_t lanes[kWindows];

    DMLOPS_INLINE explicit Shuffle(const ShuffledVector& v)
        : index(load_element<Vector>(reinterpret_cast<const char*>(v.index))) {
      std::memcpy(lanes, v.lanes, sizeof lanes);
    }
    DMLOPS_INLINE Vector operator()(const char* source, const std::int64_t* windows) const {
      Vector result = permuted(load_element<Vector>(source + windows[0]), index);
#pragma GCC unroll 16
      for (int i = 1; i < kWindows; ++i)
        result = permuted(load_element<Vector>(source + windows[i]), index, lanes[i], result);
      return result;
    }
  };
};
template <class U>
using Windows = std::conditional_t<sizeof(U) == 1, ByteWindows, ElementWindows<U>>;
#else
template <class U>
using Windows = ByteWindows;
#endif

// Writes a vector for each group of patterns, `step` bytes or `offsets` apart.
using ShuffleLoop = void (*)(char* target, std::int64_t target_step, const char* source,
                             std::int64_t step, const std::int64_t* offsets, std::int64_t count,
                             const ShuffledVector& v);

template <class Shuffling, int kWindows>
DMLOPS_NO_INLINE void shuffle_vectors(char* target, std::int64_t target_step, const char* source,
                                      std::int64_t step, const std::int64_t* offsets,
                                      std::int64_t count, const ShuffledVector& v) {
  const typename Shuffling::template Shuffle<kWindows> shuffle(v);
  std::int64_t windows[kWindows];
  std::memcpy(windows, v.windows, sizeof windows);
  if (offsets != nullptr) {
    for (std::int64_t i = 0; i < count; ++i)
      store_element(target + i * target_step, shuffle(source + offsets[i], windows));
    return;
  }
#pragma GCC unroll 2
  for (std::int64_t i = 0; i < count; ++i, source += step, target += target_step)
    store_element(target, shuffle(source, windows));
}

template <class Shuffling, int... kIndex>
DMLOPS_INLINE ShuffleLoop shuffle_loop(int windows, std::integer_sequence<int, kIndex...>) {
  static constexpr ShuffleLoop kLoops[] = {shuffle_vectors<Shuffling, kIndex + 1>...};
  return kLoops[windows - 1];
}

// The shuffles of an operand's patterns. A group of patterns is packed into vectors that may extend
// beyond it, and over which the next group is packed.
class PatternShuffles {
 public:
  bool is_prepared() const { return together_ >= 0; }
  bool is_rejected() const { return together_ == 0; }
  void reject() { together_ = 0; }

  // Chooses the patterns of a group, or none if shuffles do not pay off: other ways take
  // `operations` for each pattern.
  template <class U>
  void prepare(const Pattern& pattern, std::int64_t repeats, float operations) {
    constexpr std::int64_t bytes = sizeof(typename Windows<U>::Vector);
    constexpr std::int64_t lanes = bytes / std::int64_t{sizeof(U)};
    const std::int64_t in_vector = max(lanes / pattern.count, 1);
    std::int64_t in_whole_vectors = lanes;
    while (in_whole_vectors > 1 && in_whole_vectors / 2 * pattern.count % lanes == 0)
      in_whole_vectors /= 2;
    const std::int64_t in_window = pattern.step == 0 ? 1 : bytes / abs(pattern.step);
    // Preparation takes longer than shuffles save if the gain is smaller, likewise for more
    // vectors.
    constexpr float kGain = 1.25F, kGainOfMore = 1.33F;
    constexpr float kOfCall = 8;  // the operations of a call, for each vector
    float best = operations / kGain;
    std::int64_t chosen = 0, arranged = 0;
    for (const std::int64_t together : {in_vector, in_whole_vectors, in_window}) {
      if (together <= chosen || together == arranged) continue;
      if (together > 1 && (pattern.step == 0 || together > repeats / 2)) continue;
      // A vector has at least one window.
      const std::int64_t vectors = ceil_div(together * pattern.count, lanes);
      const auto patterns = static_cast<float>(together), all = static_cast<float>(repeats);
      constexpr float kMinOperations = Windows<U>::kStore + Windows<U>::kWindow;
      if (static_cast<float>(vectors) * (kMinOperations / patterns + kOfCall / all) >= best)
        continue;
      arranged = together;
      if (!arrange<U>(pattern, together, best * patterns)) continue;
      const float left = static_cast<float>(beyond_) / all;
      const auto calls = static_cast<float>((repeats % together == 0 ? 1 : 2) * vector_count_);
      const float of_pattern =
          operations_ / patterns * (1 - left) + operations * left + kOfCall * calls / all;
      if (of_pattern >= best) continue;
      chosen = together;
      const bool is_full = 5 * together * pattern.count >= 3 * vector_count_ * lanes;
      if (is_full && left < 0.1F) break;
      best = of_pattern / kGainOfMore;
    }
    constexpr float kAny = 1e9F;
    if (chosen != arranged && chosen != 0) arrange<U>(pattern, chosen, kAny);
    together_ = chosen;
  }

  // Packs patterns from `source` on, or at offsets from it unless null. Returns the number of
  // packed ones: the last ones leave no space for windows and, unless `spills`, for vectors.
  template <class U>
  std::int64_t pack(char* target, const char* source, const std::int64_t* offsets,
                    std::int64_t repeats, bool spills) const {
    constexpr std::int64_t bytes = sizeof(typename Windows<U>::Vector);
    if (is_rejected()) return 0;
    const std::int64_t packed = repeats - (spills ? beyond_ : max(beyond_, spilled_));
    if (packed < together_) return 0;
    const auto shuffle = [&](std::int64_t first, std::int64_t groups) {
      // The last vectors come first, since the first ones overwrite what they spill.
      for (int i = vector_count_ - 1; i >= 0; --i) {
        const ShuffledVector& v = vectors_[i];
        shuffle_loop<Windows<U>>(v.count, std::make_integer_sequence<int, kMaxWindows>())(
            target + first * bytes_ + i * bytes, together_ * bytes_, source + first * step_,
            together_ * step_, offsets, groups, v);
      }
    };
    shuffle(0, packed / together_);
    if (packed % together_ != 0) shuffle(packed - together_, 1);
    return packed;
  }

 private:
  // Chooses windows of [begin, end) that have the `used` elements at `offsets`, each window from
  // the first remaining element on, which is initially at `window`. Returns false if the windows
  // are too many.
  template <class U>
  static bool choose_windows(ShuffledVector& v, const std::int64_t* offsets, std::int64_t used,
                             std::int64_t window, std::int64_t begin, std::int64_t end) {
    using W = Windows<U>;
    constexpr std::int64_t size = sizeof(U), bytes = sizeof(typename W::Vector);
    std::memset(v.index, 0x80, sizeof v.index);
    v.count = 0;
    for (std::uint32_t remaining = ~0u >> (32 - used); remaining != 0; ++v.count) {
      if (v.count == kMaxWindows) return false;
      const std::int64_t excess = max(window + bytes - end, 0);
      window -= round_up(excess, W::kUnit);
      if (window < begin) return false;
      std::int64_t next = INT64_MAX;
      std::uint32_t selected = 0;
      for (std::int64_t k = 0; k < used; ++k) {
        if (!has_bit(remaining, k)) continue;
        const std::int64_t position = offsets[k] - window;
        if (position <= bytes - size && position % W::kUnit == 0) {
          W::template select<U>(v, k, position);
          selected |= 1u << k;
        } else {
          next = min(next, offsets[k]);
        }
      }
      v.windows[v.count] = window;
      v.lanes[v.count] = selected;
      remaining &= ~selected;
      window = next;
    }
    return true;
  }

  // Returns false if a vector has too many windows, or a group takes too many operations.
  template <class U>
  bool arrange(const Pattern& pattern, std::int64_t together, float max_operations) {
    using W = Windows<U>;
    constexpr std::int64_t size = sizeof(U), bytes = sizeof(typename W::Vector),
                           lanes = bytes / size;
    const std::int64_t total = together * pattern.count, count = ceil_div(total, lanes);
    if (count > kMaxVectors) return false;
    std::int64_t begin = pattern.offsets[0], end = pattern.offsets[0];
    for (std::int64_t i = 1; i < pattern.count; ++i) {
      begin = min(begin, pattern.offsets[i]);
      end = max(end, pattern.offsets[i]);
    }
    const std::int64_t across = (together - 1) * pattern.step;
    begin += min(across, 0);
    end += max(across, 0) + size;
    // Windows of a small group extend over the next ones.
    const std::int64_t beyond = max(bytes - (end - begin), 0);
    if (beyond > 0 && pattern.step == 0) return false;
    (pattern.step < 0 ? begin : end) += pattern.step < 0 ? -beyond : beyond;
    operations_ = 0;
    std::int64_t element = 0, distance = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      ShuffledVector& v = vectors_[i];
      const std::int64_t used = min(lanes, total - i * lanes);
      std::int64_t offsets[lanes], window = INT64_MAX;
      for (std::int64_t k = 0; k < used; ++k) {
        offsets[k] = distance + pattern.offsets[element++];
        window = min(window, offsets[k]);
        if (element < pattern.count) continue;
        element = 0;
        distance += pattern.step;
      }
      if (!choose_windows<U>(v, offsets, used, window, begin, end)) return false;
      operations_ += W::kStore + W::kWindow * static_cast<float>(v.count);
      // Estimates the operations of the group from those of the first vector.
      const std::int64_t like = i == 0 ? total / used : 1;
      if (operations_ * static_cast<float>(like) >= max_operations) return false;
    }
    vector_count_ = static_cast<int>(count);
    together_ = together;
    step_ = pattern.step;
    bytes_ = pattern.count * size;
    spilled_ = ceil_div(count * bytes - total * size, bytes_);
    beyond_ = beyond > 0 ? ceil_div(beyond, abs(step_)) : 0;
    return true;
  }

  ShuffledVector vectors_[kMaxVectors];
  int vector_count_;            // of a group
  float operations_;            // of a group
  std::int64_t together_ = -1;  // patterns of a group; 0 if shuffles do not pay off, -1 if unknown
  std::int64_t bytes_;          // of a packed pattern
  std::int64_t step_;           // between patterns
  std::int64_t beyond_, spilled_;  // patterns over which windows and vectors may extend
};
#else
class PatternShuffles {
 public:
  bool is_rejected() const { return true; }
};
#endif

}  // namespace dmlops::DMLOPS_TARGET
