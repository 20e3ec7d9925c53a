// The kernels of bytes for AVX-512 without VBMI. On processors with VBMI they are replaced, so that
// no other test runs them.
#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>

#include "core/build.hpp"
#include "dmlops/runtime.hpp"
#include "kernels/kernel.hpp"

namespace dmlops {

namespace baseline {
void set_kernels(KernelTable& table);
}
#if defined(DMLOPS_HAS_AVX512)
namespace avx512 {
void set_kernels(KernelTable& table);
}

namespace {

// Each value several times, enough elements for a lookup table.
using Bytes = std::array<unsigned char, 5000>;

Bytes results(RowKernel kernel, const void* parameters) {
  Bytes x{}, y{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned char>(i * 7);
  Rows rows;
  rows.length = static_cast<std::int64_t>(x.size());
  rows.count = 1;
  for (int k = 0; k < 2; ++k) {
    rows.data[k] = reinterpret_cast<char*>(k == 0 ? y.data() : x.data());
    rows.layout[k] = Layout::in_place;
  }
  kernel(rows, parameters);
  return y;
}

class ByteKernels : public testing::TestWithParam<DataType> {
 protected:
  void SetUp() override {
    const auto names = available_isas();
    if (std::find(names.begin(), names.end(), "avx512") == names.end()) GTEST_SKIP();
  }
};

TEST_P(ByteKernels, AreThoseOfTheBaseline) {
  const auto type = static_cast<std::size_t>(GetParam());
  KernelTable with_avx512 = {}, without = {};
  avx512::set_kernels(with_avx512);
  baseline::set_kernels(without);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::pair<float, float> parameters[] = {{1, 0},     {1.7f, 0.3f},      {-0.37f, 2.9f},
                                                {0.1f, 0},  {1e30f, -5},       {0, 7.5f},
                                                {-1, 0.5f}, {kInfinity, 1.0f}, {0.0039f, -100}};
  for (const auto& [scale, bias] : parameters) {
    const ClipParameters clip{3, 120, scale, bias};
    EXPECT_EQ(results(with_avx512.clip_scaled[type], &clip),
              results(without.clip_scaled[type], &clip))
        << "clip, " << scale << ", " << bias;
    const ActivationParameters shrink{bias, scale};
    EXPECT_EQ(results(with_avx512.shrink_integer[type], &shrink),
              results(without.shrink_integer[type], &shrink))
        << "shrink, " << bias << ", " << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ByteKernels, testing::Values(DataType::int8, DataType::uint8));

}  // namespace
#endif
}  // namespace dmlops
