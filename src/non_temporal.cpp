// From which size on outputs are written with non-temporal stores.
#include "non_temporal.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "cpuid.hpp"
#include "dmlops/runtime.hpp"
#include "environment.hpp"

namespace dmlops {
namespace {

#if defined(DMLOPS_X86)
// The size of AMD's last cache, where CPUID says it.
std::int64_t last_cache() {
  const auto field = [](unsigned int value, int shift, unsigned int mask) {
    return static_cast<std::int64_t>((value >> shift) & mask) + 1;
  };
  std::int64_t largest = 0;
  for (unsigned int i = 0; i < 8; ++i) {
    const CpuId cache(0x8000001d, i);
    if ((cache.a & 31u) == 0) break;  // no more of them
    const std::int64_t ways = field(cache.b, 22, 0x3ff), partitions = field(cache.b, 12, 0x3ff);
    const std::int64_t line = field(cache.b, 0, 0xfff), sets = field(cache.c, 0, ~0u);
    largest = std::max(largest, ways * partitions * line * sets);
  }
  return largest;
}
#endif

// A usual store reads the line that it overwrites; what is larger than the last cache gains nothing
// from that. Measured, clip of float32, one thread, time of usual stores / non-temporal ones:
//
//   input + output       4 + 4 MiB    16 + 16 MiB    64 + 64 MiB
//   Zen 4, 32 MiB L3        0.58          1.16           1.5
//   Sapphire Rapids         1.24          1.27           1.6
//   Cascade Lake            0.5           0.75           0.75
//
// So: AMD's processors from the size of their last cache; Intel's since Sapphire Rapids (told by
// AVX512-FP16) from where an output is unlikely to be found in a cache by its reader.
std::int64_t measured() {
#if defined(DMLOPS_X86)
  constexpr std::int64_t kLargeOutput = std::int64_t{32} << 20;
  constexpr unsigned int kIntel = 0x756e6547, kAmd = 0x68747541;  // "Genu"ine, "Auth"entic
  const unsigned int vendor = CpuId(0).b;
  if (vendor == kAmd) return std::max(kLargeOutput, last_cache());
  if (vendor == kIntel && has(CpuId(7).d, bits({23}))) return kLargeOutput;
#endif
  return std::numeric_limits<std::int64_t>::max();
}

std::atomic<std::int64_t>& threshold() {
  static std::atomic<std::int64_t> bytes{
      whole_number_from("DMLOPS_NON_TEMPORAL_THRESHOLD").value_or(measured())};
  return bytes;
}

}  // namespace

std::int64_t non_temporal_threshold() { return threshold().load(std::memory_order_relaxed); }

void set_non_temporal_threshold(std::int64_t bytes) {
  threshold().store(bytes, std::memory_order_relaxed);
}

}  // namespace dmlops
