// Selects the kernels: those of the fastest instruction set that the processor supports, or of the
// one in DMLOPS_ISA.
#include "core/isa.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <string>

#include "core/attributes.hpp"
#include "core/build.hpp"
#include "core/cpuid.hpp"
#include "core/text.hpp"
#include "dmlops/runtime.hpp"

// Defined in kernels/table.cpp, which is compiled once per instruction set.
namespace dmlops::baseline {
void set_kernels(KernelTable& table);
}
#if defined(DMLOPS_HAS_AVX2)
namespace dmlops::avx2 {
void set_kernels(KernelTable& table);
}
#endif
#if defined(DMLOPS_HAS_AVX512)
namespace dmlops::avx512 {
void set_kernels(KernelTable& table);
}
namespace dmlops::vbmi {
void set_byte_kernels(KernelTable& table);  // in kernels/table_vbmi.cpp
}
#endif

namespace dmlops {
namespace {

#if defined(DMLOPS_X86)
// True if the operating system saves these registers on context switches.
bool saves(unsigned int registers) {
  unsigned int low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return has(low, registers);
}
[[maybe_unused]] bool has_avx2() {
  constexpr unsigned int kFmaOsxsaveAvxF16c = bits({12, 27, 28, 29}), kAvx2 = bits({5});
  return has(CpuId(1).c, kFmaOsxsaveAvxF16c) && saves(bits({1, 2})) && has(CpuId(7).b, kAvx2);
}
#endif
#if defined(DMLOPS_HAS_AVX512)
bool has_avx512() {
  constexpr unsigned int kFDqBwVl = bits({16, 17, 30, 31});
  return has_avx2() && saves(bits({1, 2, 5, 6, 7})) && has(CpuId(7).b, kFDqBwVl);
}
// Replaces kernels by those for VBMI if the processor supports it.
void set_avx512_kernels(KernelTable& table) {
  avx512::set_kernels(table);
  constexpr unsigned int kVbmi = bits({1});
  if (has(CpuId(7).c, kVbmi)) vbmi::set_byte_kernels(table);
}
#endif
bool always() { return true; }

struct Candidate {
  const char* name;
  bool (*runs_here)();
  void (*set_kernels)(KernelTable& table);
};
constexpr Candidate kCandidates[] = {
// Fastest first.
#if defined(DMLOPS_HAS_AVX512)
    {"avx512", has_avx512, set_avx512_kernels},
#endif
#if defined(DMLOPS_HAS_AVX2)
    {"avx2", has_avx2, avx2::set_kernels},
#endif
    {"baseline", always, baseline::set_kernels},
};

// The tables of the candidates; the name of an unsupported one is null.
using Tables = std::array<KernelTable, std::size(kCandidates)>;

// Filled when the library is loaded: a fork by another thread during a first call that fills the
// tables could leave the child with partly filled ones. tables() fills them earlier for static
// constructors that run before this one.
Tables all_tables = {};
bool tables_filled = false;

const Tables& tables() {
  if (tables_filled) return all_tables;
  for (std::size_t i = 0; i < all_tables.size(); ++i) {
    if (!kCandidates[i].runs_here()) continue;
    kCandidates[i].set_kernels(all_tables[i]);
    all_tables[i].name = kCandidates[i].name;
  }
  tables_filled = true;
  return all_tables;
}
[[maybe_unused]] const Tables& filled_at_load = tables();

// Returns the kernels of the named instruction set, or of the fastest if the name is empty. `who`
// begins the error message.
const KernelTable& select(const std::string& name, const char* who) {
  for (const KernelTable& table : tables()) {
    if (table.name != nullptr && (name.empty() || name == table.name)) return table;
  }
  const std::string known =
      joined(std::size(kCandidates), [](std::size_t i) { return kCandidates[i].name; });
  const std::vector<std::string> usable = available_isas();
  const std::string available = joined(usable.size(), [&](std::size_t i) { return usable[i]; });
  throw Error(concat(who, printable(name), " cannot be used; known: ", known,
                     "; available on this processor: ", available));
}

std::atomic<const KernelTable*> selected{nullptr};

DMLOPS_COLD const KernelTable& first_kernels() {
  const char* const forced = std::getenv("DMLOPS_ISA");
  // Concurrent first calls all store the same pointer.
  const KernelTable& found = select(forced == nullptr ? "" : forced, "DMLOPS_ISA=");
  const KernelTable* table = nullptr;
  return selected.compare_exchange_strong(table, &found) ? found : *table;
}

}  // namespace

const KernelTable& kernels() {
  const KernelTable* const table = selected.load(std::memory_order_acquire);
  return table != nullptr ? *table : first_kernels();
}

std::string isa() { return kernels().name; }

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const KernelTable& table : tables()) {
    if (table.name != nullptr) names.emplace_back(table.name);
  }
  return names;
}

void set_isa(const std::string& name) {
  if (name.empty()) throw Error("set_isa: the name is empty");
  selected.store(&select(name, "set_isa: "), std::memory_order_release);
}

}  // namespace dmlops
