// The golden digests of tests/golden.txt, from this compiler, at this optimization, on this
// processor: dense, strided, in place, on several threads, and through descriptors.
#include <cstring>
#include <gtest/gtest.h>

#include "dmlops/runtime.hpp"
#include "golden_cases.hpp"
#include "restored_settings.hpp"

namespace dmlops {
namespace {

using Tensors = std::vector<GoldenTensor>;

std::vector<ConstTensorView> views(const Tensors& tensors) {
  std::vector<ConstTensorView> result;
  for (const GoldenTensor& tensor : tensors) {
    result.emplace_back(tensor.bytes.data(), tensor.type, tensor.sizes);
  }
  return result;
}

std::vector<TensorView> views(Tensors& tensors) {
  std::vector<TensorView> result;
  for (GoldenTensor& tensor : tensors) {
    result.emplace_back(tensor.bytes.data(), tensor.type, tensor.sizes);
  }
  return result;
}

void run_dense(const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
  golden.call(views(inputs), views(outputs));
}

void run_in_place(const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
  outputs[0].bytes = inputs[0].bytes;
  std::vector<ConstTensorView> in = views(inputs);
  const std::vector<TensorView> out = views(outputs);
  in[0] = out[0];
  golden.call(in, out);
}

// Copies elements of kSize bytes. Sanitizers make a call of memcpy() with a variable size slow.
template <std::size_t kSize>
void copy_elements(char* to, std::size_t to_step, const char* from, std::size_t from_step,
                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_step, from + i * from_step, kSize);
}

void copy_elements(std::size_t size, char* to, std::size_t to_step, const char* from,
                   std::size_t from_step, std::size_t count) {
  switch (size) {
    case 1:
      return copy_elements<1>(to, to_step, from, from_step, count);
    case 2:
      return copy_elements<2>(to, to_step, from, from_step, count);
    case 4:
      return copy_elements<4>(to, to_step, from, from_step, count);
    default:
      return copy_elements<8>(to, to_step, from, from_step, count);
  }
}

// Returns a view of the same tensor in other memory, with elements `step` bytes apart.
template <class View>
View with_step(View view, decltype(View::data) data, std::size_t step) {
  const auto size = static_cast<std::int64_t>(element_size(view.type));
  view.data = data;
  for (auto& stride : view.strides) stride = stride / size * static_cast<std::int64_t>(step);
  return view;
}

// An odd address, and a byte or more between elements.
void run_strided(const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
  GoldenTensor& output = outputs[0];
  const std::size_t size = element_size(output.type), step = 2 * size + 1, count = output.count();
  std::vector<char> from(count * step + 1), to(count * step + 1);
  copy_elements(size, from.data() + 1, step, inputs[0].bytes.data(), size, count);
  std::vector<ConstTensorView> in = views(inputs);
  std::vector<TensorView> out = views(outputs);
  in[0] = with_step(in[0], from.data() + 1, step);
  out[0] = with_step(out[0], to.data() + 1, step);
  golden.call(in, out);
  copy_elements(size, output.bytes.data(), size, to.data() + 1, step, count);
}

void run_descriptor(const GoldenCase& golden, const Tensors& inputs, Tensors& outputs) {
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
  Device().compile(desc).dispatch(in.data(), in.size(), out.data(), out.size());
}

// A form of the call, which fills the outputs.
struct Form {
  const char* name;
  int threads;
  void (*run)(const GoldenCase& golden, const Tensors& inputs, Tensors& outputs);
};
constexpr Form kForms[] = {{"strided", 3, run_strided},
                           {"descriptor", 2, run_descriptor},
                           {"dense", 1, run_dense},
                           {"in place", 7, run_in_place}};

// Sanitizers multiply the time, so that only the first forms run there: both use threads, on memory
// at odd addresses and in bindings.
#ifdef DMLOPS_SANITIZED
constexpr int kFormCount = 2;
#else
constexpr int kFormCount = 4;
#endif

TEST(Golden, EveryCaseInEveryForm) {
  try {
    isa();
  } catch (const std::invalid_argument& error) {
    GTEST_SKIP() << error.what();
  }
  const RestoredSettings restored;
  const std::vector<GoldenCase> cases = golden_cases(DMLOPS_GOLDEN);
  ASSERT_GT(cases.size(), 300u) << "in " << DMLOPS_GOLDEN;
  for (const GoldenCase& golden : cases) {
    const Tensors inputs = golden.inputs();
    for (int i = 0; i < kFormCount; ++i) {
      const Form& form = kForms[i];
      Tensors outputs = golden.outputs();
      set_num_threads(form.threads);
      form.run(golden, inputs, outputs);
      EXPECT_EQ(golden_digest(outputs), golden.digest)
          << isa() << ", " << form.name << ": " << golden.line;
    }
  }
}

}  // namespace
}  // namespace dmlops
