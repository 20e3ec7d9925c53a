// What this build is: for bug reports.
#include "dmlops/runtime.hpp"

namespace dmlops {

std::string version() { return DMLOPS_VERSION; }

int abi_version() noexcept { return DMLOPS_ABI_VERSION; }

std::string compiler() {
#if defined(__clang__)
  return std::string("Clang ") + __clang_version__;
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

std::string build_flags() { return DMLOPS_BUILD_FLAGS; }

}  // namespace dmlops
