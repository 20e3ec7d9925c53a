// The golden digests of tests/golden.txt, from this compiler, at this optimization, on this
// processor: dense, strided, in place, on several threads, and through descriptors.
#include <cstring>
#include <gtest/gtest.h>

#include "dmlops/runtime.hpp"
#include "golden_cases.hpp"

namespace dmlops {
namespace {

// A view of the tensor's memory, or of a copy with the given number of bytes between elements.
template <class View, class Memory>
View view(const GoldenTensor& tensor, Memory* memory, std::size_t step) {
  View result(memory, tensor.type, static_cast<int>(tensor.sizes.size()), {}, {});
  auto stride = static_cast<std::int64_t>(step);
  for (std::size_t d = tensor.sizes.size(); d-- > 0;) {
    result.sizes[d] = tensor.sizes[d];
    result.strides[d] = stride;
    stride *= tensor.sizes[d];
  }
  return result;
}

ConstTensorView dense(const GoldenTensor& tensor) {
  return view<ConstTensorView>(tensor, tensor.bytes.data(), element_size(tensor.type));
}

class Golden : public testing::Test {
 protected:
  void SetUp() override {
    try {
      isa();
    } catch (const std::invalid_argument& error) {
      GTEST_SKIP() << error.what();
    }
  }

  // Runs every case and expects its digest; `run` fills the output, which has the input's layout.
  template <class Run>
  static void expect(const Run& run, bool in_place = false) {
    const std::vector<GoldenCase> cases = golden_cases(DMLOPS_GOLDEN);
    ASSERT_GT(cases.size(), 300u) << "in " << DMLOPS_GOLDEN;
    for (const GoldenCase& golden : cases) {
      if (in_place && !golden.elementwise()) continue;
      std::vector<GoldenTensor> inputs = golden.inputs();
      GoldenTensor output = inputs[0];
      if (!in_place) std::memset(output.bytes.data(), 0x77, output.bytes.size());
      run(golden, inputs, output);
      EXPECT_EQ(golden_digest(output.bytes.data(), output.count(), element_size(output.type)),
                golden.digest)
          << isa() << ": " << golden.line;
    }
    set_num_threads(1);
  }

  static std::vector<ConstTensorView> views(const std::vector<GoldenTensor>& tensors) {
    std::vector<ConstTensorView> result;
    for (const GoldenTensor& tensor : tensors) result.push_back(dense(tensor));
    return result;
  }
};

TEST_F(Golden, Dense) {
  set_num_threads(1);
  expect([](const GoldenCase& golden, const auto& inputs, GoldenTensor& output) {
    golden.call(views(inputs),
                view<TensorView>(output, output.bytes.data(), element_size(output.type)));
  });
}

TEST_F(Golden, InPlaceOnThreads) {
  set_num_threads(7);
  expect(
      [](const GoldenCase& golden, const auto& inputs, GoldenTensor& output) {
        std::vector<ConstTensorView> in = views(inputs);
        const TensorView both =
            view<TensorView>(output, output.bytes.data(), element_size(output.type));
        in[0] = both;
        golden.call(in, both);
      },
      true);
}

// An odd address, and a byte more to each element.
TEST_F(Golden, StridedOnThreads) {
  set_num_threads(3);
  expect([](const GoldenCase& golden, const auto& inputs, GoldenTensor& output) {
    const std::size_t size = element_size(output.type), step = 2 * size + 1, count = output.count();
    std::vector<char> from(count * step + 1), to(count * step + 1);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(from.data() + 1 + i * step, inputs[0].bytes.data() + i * size, size);
    }
    std::vector<ConstTensorView> in = views(inputs);
    in[0] = view<ConstTensorView>(output, from.data() + 1, step);
    golden.call(in, view<TensorView>(output, to.data() + 1, step));
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(output.bytes.data() + i * size, to.data() + 1 + i * step, size);
    }
  });
}

TEST_F(Golden, Descriptors) {
  set_num_threads(2);
  const Device device;
  expect([&device](const GoldenCase& golden, const auto& inputs, GoldenTensor& output) {
    std::vector<ConstBinding> in;
    for (const GoldenTensor& tensor : inputs) {
      in.push_back({tensor.bytes.data(), 0, tensor.bytes.size(), true});
    }
    const Binding out = {output.bytes.data(), 0, output.bytes.size(), true};
    device.compile(golden.descriptor()).dispatch(in.data(), in.size(), &out, 1);
  });
}

}  // namespace
}  // namespace dmlops
