// The memory policy of kernels, which depends on the rows alone: prefetch distances, the direction
// of loops, and the sizes from which rows are streamed, merged or repeated. traversal/policy.cpp
// has the decisions about whole calls.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/vec.hpp"

namespace dmlops::DMLOPS_TARGET {

// Prefetch distances, where the hardware prefetcher does not follow. Non-temporal stores make it
// less effective.
constexpr std::int64_t kStreamedAhead = 1024;      // bytes of the input of non-temporal stores
constexpr std::int64_t kBlockAhead = kBlockBytes;  // the same if a block lies in between
constexpr std::int64_t kPairsFurther = 4;          // as many times as far, of each of two inputs
constexpr std::int64_t kRowsAhead = 4;             // rows in place that are not near each other

// Bytes of the gaps between rows from which rows are prefetched, up to a length.
constexpr std::int64_t kLargestGap = 256, kLongestPrefetched = 1024;

// Bytes up to which contiguous broadcast rows share vectors.
constexpr std::int64_t kLongestMerged = 4 * kVectorBytes;

// Bytes from which the runs of rows that alternate in memory are copied in its order: those of one
// run of each row.
constexpr std::int64_t kShortestAlternate = 128;

// Bytes of a row that is repeated, whose results are kept in L1.
constexpr std::int64_t kRepeatedBytes = 4 * kBlockBytes;

// Bytes of a broadcast row from which non-temporal stores pay off.
constexpr std::int64_t kShortestStreamedRow = 1024;

// Bytes of a row in place from which non-temporal stores write it by itself: shorter rows share
// most of their cache lines.
constexpr std::int64_t kShortestStreamedInPlace = 256;

// Bytes of the input and the output of a reduction up to which runs of groups are not prefetched.
constexpr std::int64_t kLikelyCached = 16 << 20;

// Bytes of a transposition's output from which the output is prefetched.
constexpr std::int64_t kUnlikelyCached = 1 << 20;

// Returns the bytes between the start of a cache line and an address.
DMLOPS_INLINE_SMALL std::int64_t bytes_past_line(const void* address) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) % kLineBytes);
}

// Prefetches the cache lines of a range, which may be inaccessible.
template <int kLocality = 3>
DMLOPS_INLINE_SMALL void prefetch_lines(const char* begin, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(begin + i, 0, kLocality);
}

// True if `a` is 1 to 1024 bytes past `b` modulo 1 MiB. Intel's memory disambiguation compares the
// low 20 bits of addresses, so a load just past an earlier store in these bits waits for the store
// (store-to-load aliasing).
DMLOPS_INLINE bool trails_closely(const void* a, const void* b) {
  constexpr std::uintptr_t kCompared = 1 << 20, kWindow = 1024;
  const auto distance = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return distance % kCompared - 1 < kWindow;
}

}  // namespace dmlops::DMLOPS_TARGET
