// The rules of a single tensor descriptor, and its view without data.
#pragma once

#include <string>

#include "dmlops/descriptors.hpp"

namespace dmlops {

// Throws ValidationError for a tensor that no operator accepts at any level. `where` begins the
// message: "ElementWiseClipOperatorDesc: input_tensor". Ensures that arithmetic on sizes and
// strides does not overflow.
void check_tensor(const BufferTensorDesc& tensor, const std::string& where);

// Returns the strides in elements; packed ones if the descriptor has none.
BufferTensorDesc::Dimensions effective_strides(const BufferTensorDesc& tensor);

// True if a dimension of size above 1 has stride 0.
bool is_broadcast(const BufferTensorDesc& tensor, std::size_t axis);

TensorView view_of(const BufferTensorDesc& tensor);
// Minimum size of a DirectML buffer that holds the tensor.
std::uint64_t total_size(const BufferTensorDesc& tensor);

// Minimum size of an array that holds the tensor. Excludes the padding of the total size to a
// multiple of 4, which is never accessed.
std::uint64_t required_size(const BufferTensorDesc& tensor);

std::string sizes_text(const BufferTensorDesc& tensor);  // "(2, 3)"

}  // namespace dmlops
