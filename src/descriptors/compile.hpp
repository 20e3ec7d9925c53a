// The contents of a compiled operator.
#pragma once

#include <vector>

#include "descriptors/table.hpp"
#include "dmlops/device.hpp"
#include "operators/plan.hpp"

namespace dmlops {

// The requirements of a tensor on its binding.
struct Slot {
  const char* name = nullptr;   // "input_tensor"
  std::uint64_t required = 0;   // bytes of an array; no byte past them is accessed
  std::uint64_t total = 0;      // bytes of a DirectML buffer
  std::uint64_t alignment = 1;  // a power of two
  bool same_layout = false;     // the output's sizes and strides: may share its memory
  bool owned = false;
  bool absent = false;        // an optional tensor that the descriptor lacks
  int operand = 0;            // its index in the plan
  std::vector<char> content;  // the bytes of an OWNED_BY_DML input

  // The message for a binding of an absent tensor.
  static constexpr const char* kAbsentText = "is bound, but the descriptor has no such tensor";
  // Throws BindingError unless the binding meets the requirements.
  void check(const OperatorInfo& op, const ConstBinding& binding) const;
};

// Returns the operand of the plan for a tensor of the struct.
int operand_of(const OperatorInfo& op, int tensor);

// Throws BindingError unless there are no initial bindings or one for each input.
void require_initial_count(const OperatorInfo& op, std::size_t given);

struct CompiledOperator::Implementation {
  const OperatorInfo* op = nullptr;
  OperatorPlan plan;
  Slot slots[OperatorDesc::kMaxTensors];  // outputs last
  std::vector<BufferTensorDesc> tensors;
  std::int64_t elements = 0;    // of the input
  bool directml_names = false;  // in error messages
};

}  // namespace dmlops
