// Run-time settings and facts: version, instruction set, threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dmlops/error.hpp"

namespace dmlops {

/// The library's version: "0.1.0".
DMLOPS_API std::string version();

/// The version of the library's binary interface, for comparison with DMLOPS_ABI_VERSION.
DMLOPS_API int abi_version() noexcept;

/// The instruction set whose kernels run: the fastest of the processor, or the one in the
/// environment variable DMLOPS_ISA.
/// \throws Error if the variable's instruction set is unknown or unsupported
DMLOPS_API std::string isa();

/// The instruction sets that this processor supports, fastest first.
DMLOPS_API std::vector<std::string> available_isas();

/// Selects one of available_isas() for all operators that are called or compiled afterwards.
/// Results do not depend on the instruction set; the function serves comparisons of speed.
/// \throws Error for any other name
DMLOPS_API void set_isa(const std::string& name);

/// The number of threads that a large call is split over, the caller's included. The default is the
/// environment variable DMLOPS_NUM_THREADS, or else the number of processors that the process may
/// use. Results do not depend on the number of threads.
/// \throws Error if the variable is not a number from 1 to 1024
DMLOPS_API int get_num_threads();

/// Sets the number of threads.
/// \throws Error for a number that is not from 1 to 1024
DMLOPS_API void set_num_threads(long long count);

/// The size of input and output in bytes from which outputs are written by non-temporal stores; the
/// largest integer if these are slower on this processor. The environment variable
/// DMLOPS_NON_TEMPORAL_THRESHOLD overrides the threshold, on which no result depends.
/// \throws Error if the variable is not an integer
DMLOPS_API std::int64_t non_temporal_threshold();

DMLOPS_API std::string compiler();     ///< "GCC 12.2.0"
DMLOPS_API std::string build_flags();  ///< the compiler's options for the portable part

}  // namespace dmlops
