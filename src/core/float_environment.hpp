// The floating-point state in which results are defined: round to nearest even, no flushing of
// subnormals, no traps.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace dmlops {

// Enters the default state, and restores the caller's state and sticky flags on destruction.
// OperatorPlan::run(), the paths of small calls, and the code that converts or compares parameters
// enter it; a worker stays in it.
class FloatEnvironment {
 public:
#if defined(__x86_64__)
  // Writes MXCSR only if needed: the operator would wait for the write.
  FloatEnvironment() : before_(_mm_getcsr()) {
    if ((before_ & ~kSticky) != kDefault) _mm_setcsr(kDefault);
  }
  // Restores MXCSR without reading it first: the read would wait for the operator's results, whose
  // exceptions MXCSR collects.
  ~FloatEnvironment() { _mm_setcsr(before_); }
#elif defined(__aarch64__)
  FloatEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("mrs %0, fpsr" : "=r"(flags_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FloatEnvironment() {
    asm volatile("msr fpsr, %0" : : "r"(flags_));
    asm volatile("msr fpcr, %0" : : "r"(before_));
  }
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__aarch64__)
  std::uint64_t before_, flags_;
#else
  static constexpr unsigned int kDefault = 0x1f80, kSticky = 0x3f;
  unsigned int before_;
#endif
};

}  // namespace dmlops
