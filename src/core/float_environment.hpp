// The floating-point state that results are defined in: nearest even, subnormals kept, no traps.
#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace dmlops {

// Holds the default state while it lives, and then puts the caller's back, with its sticky flags.
class FloatEnvironment {
 public:
#if defined(__x86_64__) || defined(_M_X64)
  // Writing the register takes as long as a small operator.
  FloatEnvironment() : before_(_mm_getcsr()) {
    if ((before_ & ~kSticky) != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }
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
