// The rules of a single tensor descriptor, and its view without data.
#include "descriptors/tensor.hpp"

#include "core/text.hpp"
#include "core/views.hpp"
#include "descriptors/table.hpp"
#include "operators/check.hpp"

namespace dmlops {
namespace {

constexpr std::uint64_t kMaxElements =
    0xffffffff;  // DirectML's limit for elements, sizes and strides

unsigned int bits_per_element(DataType type) {
  if (type == DataType::uint4 || type == DataType::int4) return 4;
  return static_cast<unsigned int>(8 * element_size(type));
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw ValidationError(concat(where, " ", what));
}

void check_shape(const BufferTensorDesc& tensor, const std::string& where) {
  if (tensor.dimension_count < 1 || tensor.dimension_count > kMaxRank) {
    refuse(where,
           concat("has ", tensor.dimension_count, " dimensions; a tensor has 1 to ", kMaxRank));
  }
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) {
    if (tensor.sizes[d] == 0) {
      refuse(where, concat("has sizes ", sizes_text(tensor), "; dimension ", d,
                           " has size 0, but must have at least 1"));
    }
  }
}

// Checks the number of elements, and returns the extent in memory in elements. Every factor and
// every checked product is below 2^32, so 64-bit arithmetic does not wrap.
std::uint64_t count_elements(const BufferTensorDesc& tensor, const std::string& where) {
  std::uint64_t elements = 1, extent = 1;
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) {
    elements *= tensor.sizes[d];
    if (elements > kMaxElements) {
      refuse(where, concat("has sizes ", sizes_text(tensor),
                           ", more than the 4294967295 elements of a tensor"));
    }
  }
  if (!tensor.strides.has_value()) return elements;
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) {
    const std::uint64_t reach = (tensor.sizes[d] - std::uint64_t{1}) * (*tensor.strides)[d];
    if (reach > kMaxElements || (extent += reach) > kMaxElements) {
      refuse(where, "has strides that reach over more than the 4294967295 elements of a tensor");
    }
  }
  return extent;
}

std::uint64_t bytes_of(DataType type, std::uint64_t elements) {
  return (elements * bits_per_element(type) + 7) / 8;
}

std::uint64_t round_up_to_4(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

std::uint64_t checked_size(const BufferTensorDesc& tensor, const std::string& where) {
  check_shape(tensor, where);
  return round_up_to_4(bytes_of(tensor.data_type, count_elements(tensor, where)));
}

}  // namespace

std::uint64_t calc_buffer_tensor_size(const BufferTensorDesc& tensor) {
  return checked_size(tensor, "calc_buffer_tensor_size: the tensor");
}

void check_tensor(const BufferTensorDesc& tensor, const std::string& where) {
  const std::uint64_t minimum = checked_size(tensor, where);
  if (tensor.total_tensor_size_in_bytes.value_or(minimum) < minimum) {
    refuse(where, concat("has total_tensor_size_in_bytes ", *tensor.total_tensor_size_in_bytes,
                         "; its type, sizes and strides need at least ", minimum));
  }
  const std::uint32_t alignment = tensor.guaranteed_base_offset_alignment;
  if ((alignment & (alignment - 1)) != 0) {
    refuse(where, concat("has guaranteed_base_offset_alignment ", alignment,
                         "; it must be 0 or a power of two"));
  }
  if (alignment != 0 && alignment < element_size(tensor.data_type)) {
    refuse(where, concat("has guaranteed_base_offset_alignment ", alignment,
                         "; it must be 0 or at least the element's size, ",
                         element_size(tensor.data_type)));
  }
  if (static_cast<std::uint32_t>(tensor.flags) > 1) {
    refuse(where, concat("has flags ", static_cast<std::uint32_t>(tensor.flags),
                         "; they must be NONE (0) or OWNED_BY_DML (1)"));
  }
}

BufferTensorDesc::Dimensions effective_strides(const BufferTensorDesc& tensor) {
  if (tensor.strides.has_value()) return *tensor.strides;
  BufferTensorDesc::Dimensions strides = {};
  std::uint32_t stride = 1;
  for (std::size_t d = tensor.dimension_count; d-- > 0;) {
    strides[d] = stride;
    stride *= tensor.sizes[d];
  }
  return strides;
}

bool is_broadcast(const BufferTensorDesc& tensor, std::size_t axis) {
  return tensor.sizes[axis] > 1 && tensor.strides.has_value() && (*tensor.strides)[axis] == 0;
}

TensorView view_of(const BufferTensorDesc& tensor) {
  TensorView view(nullptr, tensor.data_type, static_cast<int>(tensor.dimension_count), {}, {});
  const BufferTensorDesc::Dimensions strides = effective_strides(tensor);
  const std::int64_t element = element_bytes(tensor.data_type);
  for (std::size_t d = 0; d < tensor.dimension_count; ++d) {
    view.sizes[d] = tensor.sizes[d];
    view.strides[d] = tensor.sizes[d] == 1 ? 0 : strides[d] * element;
  }
  return view;
}

std::uint64_t total_size(const BufferTensorDesc& tensor) {
  return tensor.total_tensor_size_in_bytes.value_or(calc_buffer_tensor_size(tensor));
}

std::uint64_t required_size(const BufferTensorDesc& tensor) {
  const std::uint64_t exact = bytes_of(tensor.data_type, count_elements(tensor, "tensor"));
  const std::uint64_t total = total_size(tensor);
  return total == round_up_to_4(exact) ? exact : total;
}

std::string sizes_text(const BufferTensorDesc& tensor) { return shape_text(view_of(tensor)); }

}  // namespace dmlops
