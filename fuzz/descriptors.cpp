// Validation and compilation of descriptors made of raw bytes: each is refused with a message, or
// accepted by this level and all above it.
#include <cstdlib>
#include <string>

#include "any_desc.hpp"

namespace dmlops::fuzz {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool accepts(const OperatorDesc& desc, FeatureLevel level) {
  try {
    validate(desc, level);
    return true;
  } catch (const ValidationError& error) {
    require(std::string(error.what()).size() > 20);  // it says something
    return false;
  }
}

// DMLCalcBufferTensorSize in arithmetic that cannot wrap.
void check_size(const BufferTensorDesc& tensor) {
  std::uint64_t size = 0;
  try {
    size = calc_buffer_tensor_size(tensor);
  } catch (const ValidationError&) {
    return;
  }
  unsigned __int128 elements = 1, last = 0;
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) {
    elements *= tensor.sizes[d];
    require(elements != 0 && elements <= 0xffffffff);
    if (tensor.strides) last += (tensor.sizes[d] - std::uint64_t{1}) * (*tensor.strides)[d];
    require(last <= 0xffffffff);
  }
  const unsigned __int128 extent = tensor.strides ? last + 1 : elements;
  const bool half = tensor.data_type == DataType::uint4 || tensor.data_type == DataType::int4;
  const unsigned __int128 bits = extent * (half ? 4 : 8 * element_size(tensor.data_type));
  require(size == (bits + 31) / 32 * 4);
}

void check(FuzzedDataProvider& bytes) {
  const OperatorDesc desc = any_desc(bytes);
  for (const auto& tensor : desc.tensors) {
    if (tensor.has_value()) check_size(*tensor);
  }
  bool accepted = false;
  FeatureLevel lowest = FeatureLevel::level_1_0;
  for (const FeatureLevel level : kFeatureLevels) {
    const bool now = accepts(desc, level);
    require(now || !accepted);  // what a level accepts, all above it do
    if (now && !accepted) lowest = level;
    accepted = now;
  }
  try {
    require(required_feature_level(desc) == lowest && accepted);
  } catch (const ValidationError&) {
    require(!accepted);
  }
  std::vector<char> memory(bytes.ConsumeIntegralInRange<std::size_t>(0, 4096));
  std::vector<ConstBinding> initial(bytes.ConsumeIntegralInRange<std::size_t>(0, 6));
  for (ConstBinding& binding : initial) {
    if (bytes.ConsumeBool()) binding = {memory.data(), 0, memory.size()};
  }
  try {
    const CompiledOperator compiled = Device(lowest).compile(desc, initial);
    require(accepted);
    compiled.dispatch(nullptr, 0, nullptr, 0);
    std::abort();  // nothing was bound
  } catch (const ValidationError&) {
    require(!accepted);
  } catch (const BindingError&) {
    require(accepted);
  }
}

}  // namespace
}  // namespace dmlops::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  dmlops::fuzz::check(bytes);
  return 0;
}
