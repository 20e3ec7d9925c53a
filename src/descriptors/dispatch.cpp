// CompiledOperator::dispatch: checks the bindings, and runs the operator on them.
#include <algorithm>
#include <string>

#include "core/text.hpp"
#include "descriptors/compile.hpp"
#include "descriptors/names.hpp"

namespace dmlops {
namespace {

struct Range {
  std::uintptr_t begin, end;

  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

Range range_of(const ConstBinding& binding) {
  const auto begin = reinterpret_cast<std::uintptr_t>(binding.buffer) + binding.offset;
  return {begin, begin + binding.size_in_bytes};
}

[[noreturn]] void refuse(const OperatorInfo& op, const std::string& what) {
  throw BindingError(concat(op.name, ": ", what));
}

// `slots` are those of the inputs or of the outputs.
void require_count(const OperatorInfo& op, const char* what, std::size_t given, int needed,
                   const Slot* slots) {
  if (given == static_cast<std::size_t>(needed)) return;
  const std::string names =
      joined(static_cast<std::size_t>(needed), [&](std::size_t i) { return slots[i].name; });
  const bool lacks_tensors =
      std::any_of(slots, slots + needed, [](const Slot& slot) { return slot.absent; });
  const bool owns = std::any_of(slots, slots + needed, [](const Slot& slot) { return slot.owned; });
  refuse(op, concat(counted(given, what), given == 1 ? " is" : " are",
                    " bound, but the operator has ", needed, ": ", names,
                    lacks_tensors
                        ? "; pass None or an empty binding for tensors that the descriptor lacks"
                    : owns ? "; pass None or an empty binding for tensors that are OWNED_BY_DML"
                           : ""));
}

// Output memory may be read only as the first input of an operator that works in place.
void check_aliasing(const CompiledOperator::Implementation& implementation, const Slot& slot,
                    const Range& input, const Slot& other, const Range& output) {
  if (!input.overlaps(output)) return;
  const OperatorInfo& op = *implementation.op;
  const std::string both = concat(slot.name, " and ", other.name, " are bound to ");
  if (&slot != implementation.slots && op.in_place) {
    refuse(op, concat(both, "overlapping memory; only ", implementation.slots[0].name,
                      " may be bound to the output's memory"));
  }
  if (!op.in_place) refuse(op, concat(both, "overlapping memory, and it does not work in place"));
  if (input.begin != output.begin || input.end != output.end) {
    refuse(op,
           concat(both,
                  "memory that overlaps in part; in place, both must be bound to the same bytes"));
  }
  if (!slot.same_layout) {
    refuse(
        op,
        concat(both, "the same memory, but their strides differ; in place, they must be the same"));
  }
}

}  // namespace

void Slot::check(const OperatorInfo& op, const ConstBinding& binding) const {
  const std::uint64_t size = binding.size_in_bytes;
  const auto refuse_size = [&](const std::string& why) {
    refuse(op, concat(name, " is bound to ", counted(size, "byte"), "; ", why));
  };
  // An array is not a DirectML resource: its size is that of its elements, which the caller cannot
  // round up. A buffer must follow DirectML's rules, so that bindings are portable.
  const std::uint64_t needed = binding.is_array ? required : total;
  if (size < needed) refuse_size(concat("it needs ", needed));
  if ((binding.offset & (alignment - 1)) != 0) {
    refuse(op, concat(name, " is bound at offset ", binding.offset, ", which is not a multiple of ",
                      alignment));
  }
  std::uintptr_t end = reinterpret_cast<std::uintptr_t>(binding.buffer);
  if (__builtin_add_overflow(end, binding.offset, &end) ||
      __builtin_add_overflow(end, binding.size_in_bytes, &end)) {
    refuse(op, concat(name, " is bound to ", counted(binding.size_in_bytes, "byte"), " at offset ",
                      binding.offset,
                      ", which end past the last address; size_in_bytes counts from the offset"));
  }
  if (!binding.is_array && size % 4 != 0) {
    refuse_size("the size of a buffer must be a multiple of 4");
  }
}

namespace {

// Checks the bindings, and sets the addresses of the plan's operands; those of absent tensors stay
// null.
void read_bindings(const CompiledOperator::Implementation& implementation,
                   const ConstBinding* inputs, std::size_t input_count, const Binding* outputs,
                   std::size_t output_count, char* (&data)[kReductionOperands]) {
  const OperatorInfo& op = *implementation.op;
  const int count = op.inputs, written_count = op.outputs;
  const Slot* const output_slots = implementation.slots + count;
  require_count(op, "input", input_count, count, implementation.slots);
  require_count(op, "output", output_count, written_count, output_slots);
  if (inputs == nullptr || outputs == nullptr) refuse(op, "the list of bindings is null");
  Range written[OperatorDesc::kMaxTensors];
  for (int i = 0; i < written_count; ++i) {
    const Slot& slot = output_slots[i];
    const ConstBinding output = {outputs[i].buffer, outputs[i].offset, outputs[i].size_in_bytes,
                                 outputs[i].is_array};
    if (output.buffer == nullptr) refuse(op, concat(slot.name, " is not bound"));
    slot.check(op, output);
    written[i] = range_of(output);
    for (int k = 0; k < i; ++k) {
      if (!written[i].overlaps(written[k])) continue;
      refuse(op,
             concat(output_slots[k].name, " and ", slot.name, " are bound to overlapping memory"));
    }
    data[slot.operand] = static_cast<char*>(outputs[i].buffer) + outputs[i].offset;
  }
  for (int i = 0; i < count; ++i) {
    const Slot& slot = implementation.slots[i];
    const ConstBinding& binding = inputs[i];
    const void* begin = slot.content.data();
    if (slot.absent) {
      if (binding.buffer != nullptr) refuse(op, concat(slot.name, " ", Slot::kAbsentText));
      continue;
    }
    if (slot.owned) {
      if (binding.buffer != nullptr) {
        refuse(op, concat(slot.name,
                          " is OWNED_BY_DML; it was bound when the operator was compiled, and must "
                          "not be bound again"));
      }
    } else {
      if (binding.buffer == nullptr) refuse(op, concat(slot.name, " is not bound"));
      slot.check(op, binding);
      for (int k = 0; k < written_count; ++k)
        check_aliasing(implementation, slot, range_of(binding), output_slots[k], written[k]);
      begin = static_cast<const char*>(binding.buffer) + binding.offset;
    }
    // Kernels write outputs only.
    data[slot.operand] = static_cast<char*>(const_cast<void*>(begin));
  }
}

}  // namespace

CompiledOperator::CompiledOperator(std::shared_ptr<const Implementation> implementation)
    : implementation_(std::move(implementation)) {}

void CompiledOperator::dispatch(const ConstBinding* inputs, std::size_t input_count,
                                const Binding* outputs, std::size_t output_count) const {
  const Implementation& implementation = *implementation_;
  char* data[kReductionOperands] = {};  // the plan has tensors at address 0
  with_names(implementation.directml_names, [&] {
    read_bindings(implementation, inputs, input_count, outputs, output_count, data);
  });
  implementation.plan.run(data);
}

}  // namespace dmlops
