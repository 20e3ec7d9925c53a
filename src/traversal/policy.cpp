// Thresholds for threads and for non-temporal stores; src/thresholds.md lists those of all files.
#include "traversal/policy.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/cpuid.hpp"
#include "core/environment.hpp"
#include "kernels/kernel.hpp"
#include "traversal/policy_setters.hpp"

namespace dmlops {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();  // as a threshold

#if defined(DMLOPS_X86)
// The size of AMD's last-level cache, where CPUID reports it.
std::int64_t llc_bytes() {
  const auto field = [](unsigned int value, int shift, unsigned int mask) {
    return static_cast<std::int64_t>((value >> shift) & mask) + 1;
  };
  std::int64_t largest = 0;
  for (unsigned int i = 0; i < 8; ++i) {
    const CpuId cache(0x8000001d, i);
    if ((cache.a & 31u) == 0) break;
    const std::int64_t ways = field(cache.b, 22, 0x3ff), partitions = field(cache.b, 12, 0x3ff);
    const std::int64_t line = field(cache.b, 0, 0xfff), sets = field(cache.c, 0, ~0u);
    largest = std::max(largest, ways * partitions * line * sets);
  }
  return largest;
}
#endif

// A regular store reads the cache line that it overwrites, which gains nothing once the data exceed
// the LLC. Measured, clip of float32, one thread, time of regular / non-temporal stores:
//
//   input + output       4 + 4 MiB    16 + 16 MiB    64 + 64 MiB
//   Zen 4, 32 MiB L3        0.58          1.16           1.5
//   Sapphire Rapids         1.24          1.27           1.6
//   Cascade Lake            0.5           0.75           0.75
//
// Therefore: on AMD's processors from the size of the LLC; on Intel's since Sapphire Rapids
// (identified by AVX512-FP16) from the size at which a reader is unlikely to find the output in a
// cache.
std::int64_t measured() {
#if defined(DMLOPS_X86)
  constexpr std::int64_t kLargeOutput = std::int64_t{32} << 20;
  constexpr unsigned int kIntel = 0x756e6547, kAmd = 0x68747541;  // "Genu"ine, "Auth"entic
  const unsigned int vendor = CpuId(0).b;
  if (vendor == kAmd) return std::max(kLargeOutput, llc_bytes());
  if (vendor == kIntel && has(CpuId(7).d, bits({23}))) return kLargeOutput;
#endif
  return kNever;
}

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();
std::atomic<std::int64_t> non_temporal_bytes{kUnknown};

// The threshold for threads: calls with less memory traffic run on the caller's thread. See
// src/thresholds.md.
std::atomic<std::int64_t> split_bytes{512 * 1024};

}  // namespace

std::int64_t non_temporal_threshold() {
  std::int64_t bytes = non_temporal_bytes.load(std::memory_order_relaxed);
  if (bytes == kUnknown) {
    bytes = whole_number_from("DMLOPS_NON_TEMPORAL_THRESHOLD", 0, kNever).value_or(measured());
    std::int64_t unknown = kUnknown;  // keeps a value that another thread has set
    if (!non_temporal_bytes.compare_exchange_strong(unknown, bytes)) bytes = unknown;
  }
  return bytes;
}

void set_non_temporal_threshold(std::int64_t bytes) {
  non_temporal_bytes.store(bytes, std::memory_order_relaxed);
}

void require_valid_environment() {
  get_num_threads();
  non_temporal_threshold();
}

std::int64_t split_threshold() { return split_bytes.load(std::memory_order_relaxed); }

void set_split_threshold(std::int64_t bytes) {
  split_bytes.store(bytes, std::memory_order_relaxed);
}

std::int64_t shard_count(std::int64_t bytes) {
  const std::int64_t threshold = split_threshold();
  if (bytes < threshold) return 1;
  const std::int64_t shard = std::max<std::int64_t>(threshold / 4, 1);
  return std::clamp<std::int64_t>(bytes / shard, 1, get_num_threads());
}

std::int64_t shard_begin(std::int64_t size, std::int64_t count, std::int64_t i, std::int64_t unit) {
  const std::int64_t units = ceil_div(size, unit);
  return std::min(size, units / count * i * unit + std::min(i, units % count) * unit);
}

bool streams(std::int64_t traffic, bool packed, bool in_place) {
  // Packing does not overlap with the reads that regular stores cause, and every second element
  // reads unused bytes, so half of the traffic suffices.
  return !in_place && traffic >= non_temporal_threshold() / (packed ? 2 : 1);
}

bool streams(const Nest& nest, char* const* data) {
  const std::int64_t size = nest.element_size;
  // The traffic below is at most 4 elements for each element of the output.
  if (!streams(4 * size * element_count(nest), true, false)) return false;
  const auto is_packed = [&nest, size](int k) {
    return nest.strides[k][0] != size && nest.strides[k][0] != 0;
  };
  const bool packed = is_packed(1) || (nest.operands == 3 && is_packed(2));
  const bool in_place = std::find(data + 1, data + nest.operands, data[0]) != data + nest.operands;
  // Repeated elements are read from the caches.
  std::int64_t read = 0;
  for (int k = 1; k < nest.operands; ++k) read = std::max(read, distinct_elements(nest, k));
  std::int64_t traffic = size * (element_count(nest) + read);
  // The transposition of a single large matrix writes lines that no hardware prefetcher follows, so
  // its elements count twice.
  if (packed && nest.operands == 2 && nest.rank > 1 && nest.strides[1][1] == size)
    traffic = std::max(traffic, 4 * size * nest.sizes[0] * nest.sizes[1]);
  if (!streams(traffic, packed, in_place) || nest.strides[0][0] != size) return false;
  // Non-temporal stores write whole cache lines of whole elements.
  return reinterpret_cast<std::uintptr_t>(data[0]) % static_cast<std::uintptr_t>(size) == 0 &&
         std::all_of(nest.strides[0], nest.strides[0] + nest.rank,
                     [size](std::int64_t stride) { return stride % size == 0; });
}

}  // namespace dmlops
