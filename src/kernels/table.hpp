// Functions that fill the table of an instruction set, one per translation unit: kernels dominate
// compile time, and units compile in parallel.
//
// The functions are compiled with the instruction set's flags, and may only be called on processors
// that support it.
#pragma once

#include "kernels/kernel.hpp"

namespace dmlops::DMLOPS_TARGET {

// The index of a type's kernels.
template <class T>
constexpr auto kTypeIndex = static_cast<std::size_t>(data_type_of<T>());

void set_kernels(KernelTable& table);  // all of them: table.cpp

void set_activations(KernelTable& table);           // activation.cpp
void set_batch_normalizations(KernelTable& table);  // batch_normalization.cpp
void set_clip(KernelTable& table);                  // clip.cpp: clip, shrink and copies
void set_gradients(KernelTable& table);             // gradients.cpp
void set_log_softmax(KernelTable& table);           // log_softmax.cpp
void set_softmax(KernelTable& table);               // softmax.cpp, with hardmax
void set_statistics(KernelTable& table);  // statistics.cpp: with the input's mean and variance
void set_two_inputs(KernelTable& table);  // two_inputs.cpp: clip_grad, parameterized_relu

void set_byte_kernels(KernelTable& table);  // table_vbmi.cpp: kernels that VBMI speeds up

}  // namespace dmlops::DMLOPS_TARGET
