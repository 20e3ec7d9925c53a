// float16 from double: every value, every midpoint between two, and the doubles next to midpoints.
#include "core/float16.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace dmlops {
namespace {

double value_of(unsigned int bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1f);
  const double mantissa = bits & 0x3ff;
  return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Float16, RoundsToNearestEven) {
  for (unsigned int bits = 0; bits < 0x7c00; ++bits) {
    const double value = value_of(bits), next = bits == 0x7bff ? 65536.0 : value_of(bits + 1);
    const double middle = (value + next) / 2;
    EXPECT_EQ(to_float16(value).bits, bits);
    EXPECT_EQ(to_float16(middle).bits, bits + bits % 2) << middle;
    EXPECT_EQ(to_float16(std::nextafter(middle, 0)).bits, bits) << middle;
    EXPECT_EQ(to_float16(std::nextafter(middle, next)).bits, bits + 1) << middle;
    EXPECT_EQ(to_float16(-value).bits, bits | 0x8000);
  }
}

TEST(Float16, Specials) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_float16(infinity).bits, 0x7c00);
  EXPECT_EQ(to_float16(-infinity).bits, 0xfc00);
  EXPECT_EQ(to_float16(1e300).bits, 0x7c00);
  EXPECT_EQ(to_float16(1e-300).bits, 0);
  EXPECT_EQ(to_float16(std::numeric_limits<double>::quiet_NaN()).bits & 0x7fff, 0x7e00);
}

}  // namespace
}  // namespace dmlops
