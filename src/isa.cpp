// Selects the kernels for the processor at hand: the fastest that it runs, or the one that
// DMLOPS_ISA names.
#include "isa.hpp"

#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "dmlops/runtime.hpp"

#if defined(__x86_64__) || defined(_M_X64)
#define DMLOPS_X86 1
#include <cpuid.h>
#endif

// Each is defined in kernels/table.cpp, compiled for that instruction set.
namespace dmlops::baseline {
extern const KernelTable& table;
}
#if defined(DMLOPS_X86)
namespace dmlops::avx2 {
extern const KernelTable& table;
}
namespace dmlops::avx512 {
extern const KernelTable& table;
}
#endif

namespace dmlops {
namespace {

struct Candidate {
  const KernelTable& table;
  bool (*runs_here)();
};

#if defined(DMLOPS_X86)
// What CPUID says, read here: the compilers' own test (__builtin_cpu_supports) needs a run-time
// library that not every linker brings.
struct CpuId {
  unsigned int a = 0, b = 0, c = 0, d = 0;
  explicit CpuId(unsigned int leaf) { __get_cpuid_count(leaf, 0, &a, &b, &c, &d); }
};
constexpr unsigned int bits(std::initializer_list<int> places) {
  unsigned int mask = 0;
  for (const int place : places) mask |= 1u << place;
  return mask;
}
bool has(unsigned int value, unsigned int mask) { return (value & mask) == mask; }

// The system must save the registers too.
bool saves(unsigned int registers) {
  unsigned int low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has(low, registers);
}
bool has_avx2() {
  constexpr unsigned int kFmaOsxsaveAvxF16c = bits({12, 27, 28, 29}), kAvx2 = bits({5});
  return has(CpuId(1).c, kFmaOsxsaveAvxF16c) && saves(bits({1, 2})) && has(CpuId(7).b, kAvx2);
}
bool has_avx512() {
  constexpr unsigned int kFDqBwVl = bits({16, 17, 30, 31});
  return has_avx2() && saves(bits({1, 2, 5, 6, 7})) && has(CpuId(7).b, kFDqBwVl);
}
#endif
bool always() { return true; }

const Candidate kCandidates[] = {
// the fastest first
#if defined(DMLOPS_X86)
    {avx512::table, has_avx512},
    {avx2::table, has_avx2},
#endif
    {baseline::table, always},
};

const KernelTable& select() {
  const char* forced = std::getenv("DMLOPS_ISA");
  const bool any = forced == nullptr || *forced == '\0';
  std::string known, available;
  for (const Candidate& candidate : kCandidates) {
    const std::string name = candidate.table.name;
    known += (known.empty() ? "" : ", ") + name;
    if (!candidate.runs_here()) continue;
    if (any || name == forced) return candidate.table;
    available += (available.empty() ? "" : ", ") + name;
  }
  throw std::invalid_argument("DMLOPS_ISA=" + std::string(forced) + " cannot be used; known: " +
                              known + "; available on this processor: " + available);
}

std::atomic<const KernelTable*> selected{nullptr};

}  // namespace

const KernelTable& kernels() {
  const KernelTable* table = selected.load(std::memory_order_acquire);
  if (table == nullptr) {
    table = &select();  // every thread that comes here at once finds the same
    selected.store(table, std::memory_order_release);
  }
  return *table;
}

void use_kernels(const KernelTable& table) { selected.store(&table, std::memory_order_release); }

std::vector<const KernelTable*> available_kernels() {
  std::vector<const KernelTable*> tables;
  for (const Candidate& candidate : kCandidates) {
    if (candidate.runs_here()) tables.push_back(&candidate.table);
  }
  return tables;
}

std::string isa() { return kernels().name; }

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const KernelTable* table : available_kernels()) names.emplace_back(table->name);
  return names;
}

}  // namespace dmlops
