// What the library runs on: version, instruction set, threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dmlops/error.hpp"

namespace dmlops {

/// The library's version: "0.1.0".
DMLOPS_API std::string version();

/// The number of the library's binary interface, to be compared with DMLOPS_ABI_VERSION.
DMLOPS_API int abi_version() noexcept;

/// The instruction set whose kernels run: the fastest that the processor has, or the one that the
/// environment variable DMLOPS_ISA names.
/// \throws Error if the variable names none that can be had
DMLOPS_API std::string isa();

/// The instruction sets that this processor could run, the fastest first.
DMLOPS_API std::vector<std::string> available_isas();

/// Chooses one of available_isas() for all operators that begin, or are compiled, from now on.
/// Results do not depend on it; it is there for those who compare speeds.
/// \throws Error for any other name
DMLOPS_API void set_isa(const std::string& name);

/// The number of threads that a large operator is split over, the caller's included. At the start:
/// the environment variable DMLOPS_NUM_THREADS, or else the number of processors that the process
/// may use. Results do not depend on it.
/// \throws Error for a variable that is no number from 1 to 1024
DMLOPS_API int get_num_threads();

/// Sets the number of threads.
/// \throws Error for a number that is not from 1 to 1024
DMLOPS_API void set_num_threads(long long count);

/// Bytes of output and input together from which on outputs are written with non-temporal stores,
/// past the caches; the largest number where this processor is not faster with them. The
/// environment variable DMLOPS_NON_TEMPORAL_THRESHOLD overrides it. Results do not depend on it.
/// \throws Error for a variable that is no whole number
DMLOPS_API std::int64_t non_temporal_threshold();

DMLOPS_API std::string compiler();     ///< "GCC 12.2.0"
DMLOPS_API std::string build_flags();  ///< the compiler's options for the portable part

}  // namespace dmlops
