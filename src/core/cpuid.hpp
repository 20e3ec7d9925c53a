// CPUID of x86 processors.
#pragma once

#if defined(__x86_64__)
#define DMLOPS_X86 1
#include <cpuid.h>
#include <initializer_list>

namespace dmlops {

// The result of CPUID. The compilers' own __builtin_cpu_supports needs a run-time library that not
// every linker links.
struct CpuId {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  explicit CpuId(unsigned int leaf, unsigned int subleaf = 0) {
    __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d);
  }
};

constexpr unsigned int bits(std::initializer_list<int> places) {
  unsigned int mask = 0;
  for (const int place : places) mask |= 1u << place;
  return mask;
}

inline bool has(unsigned int value, unsigned int mask) { return (value & mask) == mask; }

}  // namespace dmlops
#endif
