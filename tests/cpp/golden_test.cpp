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

  // Runs every case and expects its digest; `run` fills the outputs. In place, the first output
  // starts as a copy of the input.
  template <class Run>
  static void expect(const Run& run, bool in_place = false) {
    const std::vector<GoldenCase> cases = golden_cases(DMLOPS_GOLDEN);
    ASSERT_GT(cases.size(), 300u) << "in " << DMLOPS_GOLDEN;
    for (const GoldenCase& golden : cases) {
      const std::vector<GoldenTensor> inputs = golden.inputs();
      std::vector<GoldenTensor> outputs = golden.outputs();
      if (in_place) outputs[0].bytes = inputs[0].bytes;
      run(golden, inputs, outputs);
      EXPECT_EQ(golden_digest(outputs), golden.digest) << isa() << ": " << golden.line;
    }
    set_num_threads(1);
  }

  static std::vector<ConstTensorView> views(const std::vector<GoldenTensor>& tensors) {
    std::vector<ConstTensorView> result;
    for (const GoldenTensor& tensor : tensors) result.push_back(dense(tensor));
    return result;
  }

  static std::vector<TensorView> views(std::vector<GoldenTensor>& tensors) {
    std::vector<TensorView> result;
    for (GoldenTensor& tensor : tensors) {
      result.push_back(view<TensorView>(tensor, tensor.bytes.data(), element_size(tensor.type)));
    }
    return result;
  }
};

using Tensors = std::vector<GoldenTensor>;

TEST_F(Golden, Dense) {
  set_num_threads(1);
  expect([](const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
    golden.call(views(inputs), views(outputs));
  });
}

TEST_F(Golden, InPlaceOnThreads) {
  set_num_threads(7);
  expect(
      [](const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
        std::vector<ConstTensorView> in = views(inputs);
        const std::vector<TensorView> out = views(outputs);
        in[0] = out[0];
        golden.call(in, out);
      },
      true);
}

// An odd address, and a byte between elements.
TEST_F(Golden, StridedOnThreads) {
  set_num_threads(3);
  expect([](const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
    GoldenTensor& output = outputs[0];
    const std::size_t size = element_size(output.type), step = 2 * size + 1, count = output.count();
    std::vector<char> from(count * step + 1), to(count * step + 1);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(from.data() + 1 + i * step, inputs[0].bytes.data() + i * size, size);
    }
    std::vector<ConstTensorView> in = views(inputs);
    std::vector<TensorView> out = views(outputs);
    in[0] = view<ConstTensorView>(output, from.data() + 1, step);
    out[0] = view<TensorView>(output, to.data() + 1, step);
    golden.call(in, out);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(output.bytes.data() + i * size, to.data() + 1 + i * step, size);
    }
  });
}

TEST_F(Golden, Descriptors) {
  set_num_threads(2);
  const Device device;
  expect([&device](const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
    const OperatorDesc desc = golden.descriptor();
    std::vector<ConstBinding> in(static_cast<std::size_t>(known_operator(desc.type).inputs));
    const GoldenTensor* next = inputs.data();
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!desc.tensors[i]) continue;
      in[i] = {next->bytes.data(), 0, next->bytes.size(), true};
      ++next;
    }
    std::vector<Binding> out;
    for (GoldenTensor& tensor : outputs) {
      out.push_back({tensor.bytes.data(), 0, tensor.bytes.size(), true});
    }
    device.compile(desc).dispatch(in.data(), in.size(), out.data(), out.size());
  });
}

}  // namespace
}  // namespace dmlops
