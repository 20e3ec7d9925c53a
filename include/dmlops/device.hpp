// Compiles operators from DirectML's descriptors, and runs them on bound memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "dmlops/descriptors.hpp"

namespace dmlops {

/// DML_BUFFER_BINDING: `size_in_bytes` bytes at `offset`. As DirectML requires, the size is a
/// multiple of 4 and at least calc_buffer_tensor_size(), or the tensor's
/// `total_tensor_size_in_bytes`. `Pointer` is `void*` or `const void*`.
template <class Pointer>
struct BasicBinding {
  Pointer buffer = nullptr;         ///< the memory; null is DML_BINDING_TYPE_NONE
  std::uint64_t offset = 0;         ///< of the tensor in the memory
  std::uint64_t size_in_bytes = 0;  ///< from the offset on
  /// The memory is an array that may end with the tensor's last element, not a DirectML buffer: the
  /// size need not be rounded up to a multiple of 4.
  bool is_array = false;
};
using Binding = BasicBinding<void*>;             ///< of an output
using ConstBinding = BasicBinding<const void*>;  ///< of an input

/// A validated operator with its kernel and loop nest, ready for data. Immutable: many threads may
/// dispatch it at once.
class DMLOPS_API CompiledOperator {
 public:
  /// Runs the operator with a binding for each input and output, in the order of the struct's
  /// fields. An OWNED_BY_DML input has no binding. Input and output may share memory if the
  /// operator works in place and both bind the same bytes with the same strides. Every rule is
  /// checked before anything is written. Bytes between and after the output's elements are never
  /// written.
  /// \throws BindingError for a binding that breaks a rule
  void dispatch(const ConstBinding* inputs, std::size_t input_count, const Binding* outputs,
                std::size_t output_count) const;

  /// Runs the operator with bindings in vectors, arrays or braces.
  void dispatch(const std::vector<ConstBinding>& inputs,
                const std::vector<Binding>& outputs) const {
    dispatch(inputs.data(), inputs.size(), outputs.data(), outputs.size());
  }

  /// \cond the library's own
  struct Implementation;
  explicit CompiledOperator(std::shared_ptr<const Implementation> implementation);
  const Implementation& implementation() const { return *implementation_; }
  /// \endcond

 private:
  std::shared_ptr<const Implementation> implementation_;
};

/// Validates and compiles descriptors as a DirectML device of the given feature level would.
class DMLOPS_API Device {
 public:
  /// A device of a feature level. Throws ValidationError for other values.
  explicit Device(FeatureLevel level = FeatureLevel::level_6_4);

  /// The device's feature level.
  FeatureLevel feature_level() const { return level_; }

  /// Checks every rule, selects the kernel and plans the loop nest. `initial` binds the
  /// OWNED_BY_DML inputs only, and copies their bytes. It has one binding for each input, or is
  /// empty if no input is OWNED_BY_DML. \throws ValidationError for a descriptor that the level
  /// does not accept \throws BindingError for an initial binding that breaks a rule
  CompiledOperator compile(const OperatorDesc& desc,
                           const std::vector<ConstBinding>& initial = {}) const;

 private:
  FeatureLevel level_;
};

}  // namespace dmlops
