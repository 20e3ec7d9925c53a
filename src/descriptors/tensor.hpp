// The rules of a single tensor descriptor, and its view without data.
#pragma once

#include <string>

#include "dmlops/descriptors.hpp"

namespace dmlops {

// Throws ValidationError with `where` ("ElementWiseClipOperatorDesc: input_tensor") in front for
// what no operator at any level accepts. After it, no size, stride or sum of them overflows.
void check_tensor(const BufferTensorDesc& tensor, const std::string& where);

// The strides in elements; packed ones where the descriptor has none.
BufferTensorDesc::Dimensions effective_strides(const BufferTensorDesc& tensor);

// Is a dimension of size above 1 read again and again?
bool is_broadcast(const BufferTensorDesc& tensor, std::size_t axis);

TensorView view_of(const BufferTensorDesc& tensor);
// Minimum size of a DirectML buffer that holds the tensor.
std::uint64_t total_size(const BufferTensorDesc& tensor);

// Minimum size of an array that holds the tensor: without the bytes by which the total size was
// rounded up to a multiple of 4, which are never touched.
std::uint64_t required_size(const BufferTensorDesc& tensor);

std::string sizes_text(const BufferTensorDesc& tensor);  // "(2, 3)"

}  // namespace dmlops
