// Version, compiler and flags of the build, for bug reports.
#include "core/build.hpp"
#include "dmlops/dmlops.h"
#include "dmlops/runtime.hpp"

namespace dmlops {

std::string version() { return DMLOPS_VERSION; }

int abi_version() noexcept { return DMLOPS_ABI_VERSION; }

std::string compiler() {
#if defined(__clang__)
  const std::string text = std::string("Clang ") + __clang_version__;
  return text.substr(0, text.find_last_not_of(' ') + 1);  // some builds of Clang end it in a space
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

std::string build_flags() { return DMLOPS_BUILD_FLAGS; }

}  // namespace dmlops

const char* dmlops_version(void) { return DMLOPS_VERSION; }
