// Compiles operators from DirectML's descriptors, and runs them on bound memory.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "dmlops/descriptors.hpp"

namespace dmlops {

// A binding that breaks a rule; nothing has been written.
class BindingError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// DML_BUFFER_BINDING: `size_in_bytes` bytes from `offset` on; no buffer is DML_BINDING_TYPE_NONE.
template <class Pointer>
struct BasicBinding {
  Pointer buffer = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t size_in_bytes = 0;
};
using Binding = BasicBinding<void*>;
using ConstBinding = BasicBinding<const void*>;

// An operator with all work done that needs no data. Immutable: many threads may dispatch it at
// once.
class CompiledOperator {
 public:
  // One binding for each input of the struct, in its order, and one for the output. An input that
  // is OWNED_BY_DML has none. Input and output may share memory where the operator works in place
  // and both bind the same bytes with the same strides. Every rule is checked before anything is
  // written; bytes between and behind the output's elements are never written.
  void dispatch(const ConstBinding* inputs, std::size_t input_count, const Binding* outputs,
                std::size_t output_count) const;

  struct Implementation;
  explicit CompiledOperator(std::shared_ptr<const Implementation> implementation);
  const Implementation& implementation() const { return *implementation_; }

 private:
  std::shared_ptr<const Implementation> implementation_;
};

// What accepts descriptors as a DirectML device of that feature level does.
class Device {
 public:
  explicit Device(FeatureLevel level = FeatureLevel::level_6_4);

  FeatureLevel feature_level() const { return level_; }

  // `initial` binds the inputs that are OWNED_BY_DML, whose bytes are copied, and no others. It has
  // one binding for each input, or is empty where there are none to bind.
  CompiledOperator compile(const OperatorDesc& desc,
                           const std::vector<ConstBinding>& initial = {}) const;

 private:
  FeatureLevel level_;
};

}  // namespace dmlops
