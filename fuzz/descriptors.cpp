// Fuzzes validation and compilation of descriptors made of raw bytes: each is refused with a
// message, or accepted by a level and all higher ones.
#include <cstdlib>
#include <optional>
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
    require(std::string(error.what()).size() > 20);  // the message is not empty
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

// The lowest level that accepts the descriptor, or none.
std::optional<FeatureLevel> lowest_level(const OperatorDesc& desc) {
  try {
    return required_feature_level(desc);
  } catch (const ValidationError& error) {
    require(std::string(error.what()).size() > 20);
    return std::nullopt;
  }
}

// A refusal is an exception, which takes 15 us under the sanitizers, so few levels are tried.
void check(FuzzedDataProvider& bytes) {
  const OperatorDesc desc = any_desc(bytes);
  const auto& tensor = desc.tensors[bytes.ConsumeIntegralInRange<std::size_t>(0, 5)];
  if (tensor.has_value()) check_size(*tensor);
  const std::optional<FeatureLevel> lowest = lowest_level(desc);
  const FeatureLevel level = bytes.PickValueInArray(kFeatureLevels);
  const bool accepted = lowest.has_value() && *lowest <= level;
  require(accepts(desc, level) == accepted);  // higher levels accept all that a lower one accepts
  if (!accepted && bytes.ConsumeIntegralInRange<int>(0, 15) != 0) return;
  std::vector<char> memory(bytes.ConsumeIntegralInRange<std::size_t>(0, 4096));
  std::vector<ConstBinding> initial(bytes.ConsumeIntegralInRange<std::size_t>(0, 6));
  for (ConstBinding& binding : initial) {
    if (bytes.ConsumeBool()) binding = {memory.data(), 0, memory.size()};
  }
  try {
    const CompiledOperator compiled = Device(level).compile(desc, initial);
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
