// What this build is: for bug reports.
#include "dmlops/runtime.hpp"

namespace dmlops {

std::string version() { return DMLOPS_VERSION; }

std::string compiler() {
#if defined(__clang__)
  return std::string("Clang ") + __clang_version__;
#else
  return std::string("GCC ") + __VERSION__;
#endif
}

std::string build_flags() { return DMLOPS_BUILD_FLAGS; }

}  // namespace dmlops
