// Packs elements whose offsets repeat after a period, by shuffles of windows of memory: pixels of a
// few channels with gaps, reversed or permuted, and broadcast elements.
#pragma once

#include "kernels/blocks/pack.hpp"

namespace dmlops::DMLOPS_TARGET {

// The offsets of `count` elements, which are repeated every `step` bytes.
struct Period {
  const std::int64_t* offsets;
  std::int64_t count, step;
};

#if defined(DMLOPS_HAS_BYTE_SHUFFLE)
// Selects bytes of 16.
template <class U>
class ByteShuffle {
 public:
  using Vector = Bytes16;
  static constexpr std::int64_t kUnit = 1;  // bytes, of which positions are multiples

  DMLOPS_INLINE void set(std::int64_t i, std::int64_t position) {
    constexpr std::int64_t size = sizeof(U);
    for (std::int64_t b = 0; b < size; ++b)
      index_[i * size + b] = static_cast<std::uint8_t>(position + b);
  }
  DMLOPS_INLINE Vector index() const {
    return load_element<Vector>(reinterpret_cast<const char*>(index_));
  }
  DMLOPS_INLINE static Vector shuffled(Vector v, Vector index) { return shuffle_bytes(v, index); }

 private:
  std::uint8_t index_[sizeof(Vector)] = {};
};

#if defined(__AVX512BW__)
// Selects elements of a vector.
template <class U>
class ElementShuffle {
 public:
  using Vector = Vec<U>;
  static constexpr std::int64_t kUnit = sizeof(U);

  DMLOPS_INLINE void set(std::int64_t i, std::int64_t position) {
    index_[i] = static_cast<U>(position / std::int64_t{sizeof(U)});
  }
  DMLOPS_INLINE Vector index() const {
    return load_element<Vector>(reinterpret_cast<const char*>(index_));
  }
  DMLOPS_INLINE static Vector shuffled(Vector v, Vector index) { return permuted(v, index); }

 private:
  U index_[kLanes<Vector>] = {};
};
#endif

// Packs as many periods at a time as a window of memory contains and a vector holds.
template <class U, class Shuffle>
class Windows {
 public:
  using Vector = typename Shuffle::Vector;

  // Windows that would be half empty or less are not used.
  explicit Windows(const Period& period) : period_(period) {
    const std::int64_t bytes = period.count * kSize, distance = abs(period.step);
    if (bytes > kWindow || distance == 0) return;
    std::int64_t lowest = period.offsets[0], highest = lowest;
    bool fits = distance % Shuffle::kUnit == 0, is_run = true;
    for (std::int64_t k = 0; k < period.count; ++k) {
      const std::int64_t offset = period.offsets[k];
      lowest = min(lowest, offset);
      highest = max(highest, offset);
      fits = fits && (offset - period.offsets[0]) % Shuffle::kUnit == 0;
      is_run = is_run && offset == period.offsets[0] + k * kSize;
    }
    const std::int64_t left = kWindow - (highest - lowest + kSize);
    if (left < 0 || !fits) return;
    const std::int64_t together = min(left / distance + 1, kWindow / bytes);
    // Single runs of contiguous elements are copied faster.
    if (2 * together * bytes <= kWindow || (is_run && together == 1)) return;
    together_ = together;
    // A window in reverse order ends with its first period.
    begin_ = period.step < 0 ? highest + kSize - kWindow : lowest;
    for (std::int64_t i = 0; i < together_; ++i) {
      for (std::int64_t k = 0; k < period.count; ++k)
        shuffle_.set(i * period.count + k, i * period.step + period.offsets[k] - begin_);
    }
    beyond_ = max((left + distance - 1) / distance, (kWindow - 1) / bytes);
  }

  // Returns the number of packed elements; the last ones leave no space for windows.
  DMLOPS_INLINE std::int64_t pack(char* target, const char* source, std::int64_t length) const {
    if (together_ == 0) return 0;
    const std::int64_t end = length / period_.count - beyond_;
    const std::int64_t step = together_ * period_.step, packed = together_ * period_.count;
    const Vector index = shuffle_.index();
    const char* window = source + begin_;
    std::int64_t i = 0;
    for (; i < end; i += together_, window += step, target += packed * kSize)
      store_element(target, Shuffle::shuffled(load_element<Vector>(window), index));
    return i * period_.count;
  }

 private:
  static constexpr std::int64_t kSize = sizeof(U), kWindow = sizeof(Vector);

  const Period period_;
  std::int64_t together_ = 0;  // periods of a window
  std::int64_t begin_ = 0;     // of a window, relative to its first period
  std::int64_t beyond_ = 0;    // periods that a window may extend over
  Shuffle shuffle_;
};

// Packs `count` rows of whole periods. Returns the number of elements that are packed of each row.
template <class U>
DMLOPS_INLINE std::int64_t pack_periods(char* target, std::int64_t target_pitch,
                                        std::int64_t length, std::int64_t count,
                                        const Source& from) {
  constexpr std::int64_t kShortest = 4 * kWindowBytes / std::int64_t{sizeof(U)};
  if (!from.fits_window || length < kShortest) return 0;
  std::int64_t offsets[kWindowBytes];
  for (std::int64_t k = 0, i = from.skip, run = 0; k < from.period; ++k, ++i) {
    if (i == from.run) {
      ++run;
      i = 0;
    }
    offsets[k] = from.offsets[run] + i * from.step;
  }
  const Period period = {offsets, from.period, from.period_step};
  std::int64_t packed = 0;
  const auto pack_rows = [&](const auto& windows) DMLOPS_LAMBDA_INLINE {
    const std::int64_t done = packed;
    for (std::int64_t r = 0; r < count; ++r)
      packed = done + windows.pack(target + r * target_pitch + done * std::int64_t{sizeof(U)},
                                   from.row(r) + done / period.count * period.step, length - done);
  };
#if defined(__AVX512BW__)
  if constexpr (sizeof(U) > 1) pack_rows(Windows<U, ElementShuffle<U>>(period));
#endif
  if constexpr (sizeof(U) < 8) pack_rows(Windows<U, ByteShuffle<U>>(period));
  return packed;
}
#else
template <class U>
DMLOPS_INLINE std::int64_t pack_periods(char*, std::int64_t, std::int64_t, std::int64_t,
                                        const Source&) {
  return 0;
}
#endif

}  // namespace dmlops::DMLOPS_TARGET
