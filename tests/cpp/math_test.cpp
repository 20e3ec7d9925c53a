// The elementary functions and the activations: a sample of float32 against double, the edges, and
// the same bits on every instruction set. exhaustive_math does the same for all of float32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "math_cases.hpp"

namespace dmlops {
namespace {

constexpr std::uint32_t kStep = 20011;  // a prime, for all exponents and varying low bits

constexpr float kEdges[] = {0.0f,       0x1p-149f, 0x1p-126f,  0x1p-64f, 0x1p-25f, 0.3465736f,
                            0.5f,       0.8f,      1.0f,       18.0f,    42.99f,   87.33655f,
                            88.722839f, 88.72284f, 103.97208f, 132.4f,   0x1p64f,  0x1.fffffep127f,
                            INFINITY,   NAN};

bool same_bits(float a, float b) {
  std::uint32_t bits[2];
  std::memcpy(&bits[0], &a, sizeof a);
  std::memcpy(&bits[1], &b, sizeof b);
  return bits[0] == bits[1];
}

TEST(Math, IsWithinItsBound) {
  for (const MathCase& math_case : math_cases()) {
    for (const MathFunctions* functions : available_math_functions()) {
      const MathError worst = largest_error(math_case, *functions, 0, kStep);
      EXPECT_LE(worst.ulp, math_case.bound)
          << math_case.name << " at " << worst.x << ", " << functions->isa;
    }
  }
}

TEST(Math, IsWithinItsBoundAtTheEdges) {
  for (const MathCase& math_case : math_cases()) {
    for (const MathFunctions* functions : available_math_functions()) {
      for (const float edge : kEdges) {
        for (const float x :
             {edge, -edge, std::nextafter(edge, 0.0f), -std::nextafter(edge, 0.0f)}) {
          std::uint32_t bits;
          std::memcpy(&bits, &x, sizeof bits);
          const float y = results(math_case, *functions, bits, 1, 1)[0];
          const double expected = std::isnan(x) ? NAN : math_case.reference(static_cast<double>(x));
          EXPECT_LE(error_in_ulp(y, expected), math_case.bound)
              << math_case.name << "(" << x << ") = " << y << ", " << functions->isa;
        }
      }
    }
  }
}

TEST(Math, QuotientsByNumbersOfElementsAreRounded) {
  constexpr std::int64_t kCounts[] = {1,   3,    7,          49,
                                      768, 1023, 12'345'677, (std::int64_t{1} << 51) - 1};
  for (const MathFunctions* functions : available_math_functions()) {
    for (const std::int64_t n : kCounts) {
      const auto number = static_cast<double>(n);
      double x = 0x1.3p-60;
      for (int i = 0; i < 5000; ++i, x = -x * 1.0157) {
        EXPECT_EQ(functions->quotient(x, n), x / number) << x << " / " << n << functions->isa;
        // Nearly midway between two numbers.
        const double product = x * number;
        EXPECT_EQ(functions->quotient(product, n), product / number) << functions->isa;
      }
      EXPECT_TRUE(std::signbit(functions->quotient(-0.0, n)));
      EXPECT_EQ(functions->quotient(-INFINITY, n), -INFINITY);
      EXPECT_TRUE(std::isnan(functions->quotient(NAN, n)));
    }
  }
}

TEST(Math, Log1pInDoubleIsWithinItsBound) {
  std::vector<double> arguments = {0, 0x1p-1000, 1e-30, 0.1, 0.25, 0.4999, 0.75, 1, 2, 7.5, 1e6};
  // 1 + x is rounded to 1.5 for some x < 0.5.
  for (double x = 0.5 - 0x1p-51; x <= 0.5 + 0x1p-51; x = std::nextafter(x, 1.0))
    arguments.push_back(x);
  for (const MathFunctions* const functions : available_math_functions()) {
    for (const double x : arguments) {
      const double expected = std::log1p(x);
      EXPECT_NEAR(functions->double_log1p(x), expected, 1e-10 * expected) << functions->isa << x;
    }
    EXPECT_TRUE(std::isnan(functions->double_log1p(std::numeric_limits<double>::quiet_NaN())));
  }
}

TEST(Math, Log1pOfPairsIsWithinItsBound) {
  constexpr std::uint32_t kSmallest = 0x20000000, kLargest = 0x4f800000;  // 2^-63, 2^32
  for (const MathFunctions* const functions : available_math_functions()) {
    for (const float relative_low : {-0x1.fp-25f, 0.0f, 0x1.fp-25f}) {
      double worst = 0;
      for (std::uint32_t bits = kSmallest; bits <= kLargest; bits += 4099) {
        float high, y[2];
        std::memcpy(&high, &bits, sizeof high);
        const float x[] = {high, high * relative_low};
        functions->pair_log1p(x, y);
        const double result = static_cast<double>(y[0]) + y[1];
        const double exact = std::log1p(static_cast<double>(x[0]) + x[1]);
        worst = std::max(worst, std::abs(result - exact) / exact);
        ASSERT_LE(std::abs(y[1]), y[0] * 0x1p-23f) << functions->isa << ", " << high;
      }
      EXPECT_LE(worst, 0x1p-25) << functions->isa << ", " << relative_low;
    }
    const float none[] = {NAN, NAN}, zero[] = {0, 0};
    float y[2];
    functions->pair_log1p(none, y);
    EXPECT_TRUE(std::isnan(y[0])) << functions->isa;
    functions->pair_log1p(zero, y);
    EXPECT_EQ(y[0] + y[1], 0) << functions->isa;
  }
}

// a * b + c, rounded once; std::fma() of musl and MinGW-w64 rounds some results twice. The product
// is exact in double, and a sum that is rounded to odd allows for the second rounding.
float fma_reference(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  double sum = product + c;
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double shadow = sum - product;
  const double error = (product - (sum - shadow)) + (c - shadow);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  if (error != 0 && bits % 2 == 0)
    sum = std::nextafter(sum, std::copysign(std::numeric_limits<double>::infinity(), error));
  return static_cast<float>(sum);
}

// Cases of double rounding of a product in double: a product midway between two floats with an
// addend below double's precision, and the same for subnormal sums. In addition, random bits, and
// products as large as the addend.
TEST(Math, FmaIsRoundedOnce) {
  constexpr std::size_t count = 1 << 19;
  // By the kind of number: exponents of the factors and the addend, significand bits of the
  // factors.
  constexpr std::uint32_t kFactor[] = {0, 127, 124, 52}, kAddend[] = {0, 127, 58, 0};
  constexpr std::uint32_t kBits[] = {0xffffffff, 0xffffffff, 0xfffff800, 0xff800000};
  std::vector<float> operands[3], actual(count);
  std::uint64_t state = 1;
  for (std::vector<float>& values : operands) {
    const bool addend = &values == &operands[2];
    for (std::size_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const std::size_t kind = i / 16 % 4;  // one for each vector
      auto bits = static_cast<std::uint32_t>(state >> 32);
      if (kind > 0) {
        const std::uint32_t spread = kind == 3 ? 0 : bits >> 23 & 7;
        bits = (bits & 0x807fffff) | ((addend ? kAddend : kFactor)[kind] + spread) << 23;
      }
      if (!addend) bits &= kBits[kind];
      // (1 + 2^-23) 2^-75 and (1 - 2^-23) 2^-75: midway but for the last bit of 47
      if (kind == 3 && &values == &operands[0]) bits += 1;
      if (kind == 3 && &values == &operands[1]) bits -= 2;
      std::memcpy(&values.emplace_back(), &bits, sizeof bits);
    }
  }
  for (const MathFunctions* functions : available_math_functions()) {
    functions->fma(actual.data(), operands[0].data(), operands[1].data(), operands[2].data(),
                   count);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float expected = fma_reference(operands[0][i], operands[1][i], operands[2][i]);
      const bool same = same_bits(expected, actual[i]);
      if (same || (std::isnan(expected) && std::isnan(actual[i]))) continue;
      if (++wrong < 5) {
        ADD_FAILURE() << functions->isa << ": " << operands[0][i] << " * " << operands[1][i]
                      << " + " << operands[2][i] << " = " << actual[i] << ", not " << expected;
      }
    }
    EXPECT_EQ(wrong, 0u) << functions->isa;
  }
}

// The golden digests fix the bits; this test compares instruction sets on many more values.
TEST(Math, HasTheSameBitsOnAllInstructionSets) {
  constexpr std::size_t count = (std::uint64_t{1} << 32) / kStep;
  const MathFunctions* first = available_math_functions()[0];
  for (const MathCase& math_case : math_cases()) {
    const std::vector<float> expected = results(math_case, *first, 1, kStep, count);
    for (const MathFunctions* functions : available_math_functions()) {
      const std::vector<float> actual = results(math_case, *functions, 1, kStep, count);
      EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin(), same_bits))
          << math_case.name << ": " << functions->isa << " and " << first->isa << " differ";
    }
  }
}

// A NaN's payload can become any integer, such as an index or an exponent. The step is odd, so that
// the low 12 bits, of which these integers consist, take every value.
TEST(Math, TakesEveryNan) {
  constexpr std::uint32_t step = 509;
  constexpr std::size_t count = 0x7fffffu / step;
  const std::vector<float> expected(count, std::numeric_limits<float>::quiet_NaN());
  for (const MathCase& math_case : math_cases()) {
    for (const MathFunctions* functions : available_math_functions()) {
      for (const std::uint32_t first : {0x7f800001u, 0xff800001u}) {
        const std::vector<float> actual = results(math_case, *functions, first, step, count);
        EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin(), same_bits))
            << math_case.name << ", " << functions->isa;
      }
    }
  }
}

// Singular parameters give the formula's result, or the limit as documented at the functor.
TEST(Math, TakesSingularParameters) {
  const auto value = [](Activation type, float alpha, float x) {
    float y;
    available_math_functions()[0]->activations[static_cast<std::size_t>(type)](&y, &x, 1, {alpha});
    return y;
  };
  EXPECT_EQ(value(Activation::celu, 0, -3), 0);
  EXPECT_EQ(value(Activation::celu, 0, 3), 3);
  EXPECT_EQ(value(Activation::celu, 0, -INFINITY), 0);
  EXPECT_TRUE(std::isnan(value(Activation::celu, NAN, -3)));
  EXPECT_EQ(value(Activation::softplus, 0, -3), INFINITY);
  EXPECT_EQ(value(Activation::softplus, -0.0f, 3), -INFINITY);
  EXPECT_TRUE(std::isnan(value(Activation::softplus, 0, INFINITY)));
  EXPECT_TRUE(std::isnan(value(Activation::softplus, NAN, 1)));
  EXPECT_EQ(value(Activation::softplus, INFINITY, 3), 3);
  EXPECT_EQ(value(Activation::thresholded_relu, NAN, 3), 0);
  EXPECT_TRUE(std::isnan(value(Activation::elu, NAN, -3)));
  EXPECT_TRUE(std::isnan(value(Activation::leaky_relu, INFINITY, NAN)));
}

}  // namespace
}  // namespace dmlops
