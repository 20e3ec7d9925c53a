// The kernels of the elementwise operators with two inputs.
#include "kernels/elementwise/clip_grad.hpp"
#include "kernels/elementwise/parameterized_relu.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class T>
void set_clip_grad_of(KernelTable& table, DataType type) {
  table.clip_grad[static_cast<std::size_t>(type)] = &clip_grad<T>;
}

template <class T>
void set_parameterized_relu_of(KernelTable& table, DataType type) {
  table.parameterized_relu[static_cast<std::size_t>(type)] = &parameterized_relu<T>;
}

}  // namespace

void set_two_inputs(KernelTable& table) {
  set_clip_grad_of<float>(table, DataType::float32);
  set_clip_grad_of<float16>(table, DataType::float16);
  set_clip_grad_of<std::uint8_t>(table, DataType::int8);
  set_clip_grad_of<std::uint16_t>(table, DataType::int16);
  set_clip_grad_of<std::uint32_t>(table, DataType::int32);
  set_clip_grad_of<std::uint64_t>(table, DataType::int64);
  set_clip_grad_of<std::uint8_t>(table, DataType::uint8);
  set_clip_grad_of<std::uint16_t>(table, DataType::uint16);
  set_clip_grad_of<std::uint32_t>(table, DataType::uint32);
  set_clip_grad_of<std::uint64_t>(table, DataType::uint64);
  set_parameterized_relu_of<float>(table, DataType::float32);
  set_parameterized_relu_of<float16>(table, DataType::float16);
  set_parameterized_relu_of<std::int8_t>(table, DataType::int8);
  set_parameterized_relu_of<std::int16_t>(table, DataType::int16);
  set_parameterized_relu_of<std::int32_t>(table, DataType::int32);
}

}  // namespace dmlops::DMLOPS_TARGET
