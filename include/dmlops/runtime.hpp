// What the library runs on: version, instruction set, threads.
#pragma once

#include <string>
#include <vector>

namespace dmlops {

std::string version();  // "0.1.0"

// The instruction set whose kernels run, and those that this processor could run, the fastest
// first. The environment variable DMLOPS_ISA forces one; std::invalid_argument if it names none of
// them.
std::string isa();
std::vector<std::string> available_isas();

// The number of threads that a large operator is split over, the caller's included. At the start:
// DMLOPS_NUM_THREADS, or else the number of processors that the process may use. Results do not
// depend on it. std::invalid_argument for a number below 1, and for an environment variable that is
// no such number.
int get_num_threads();
void set_num_threads(long long count);

std::string compiler();     // "GCC 12.2.0"
std::string build_flags();  // the compiler's options for the portable part

}  // namespace dmlops
