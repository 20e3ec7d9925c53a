// Selects the kernels for the processor at hand: the fastest that it runs, or the one that
// DMLOPS_ISA names.
#include "isa.hpp"

#include <atomic>
#include <cstdlib>
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
bool has_avx2() {
  // F16C has no name in the compilers' feature test of older versions. The test below covers the
  // system's support.
  unsigned int a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (1u << 29)) != 0;
  return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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
