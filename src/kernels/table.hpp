// The functions that fill the table of one instruction set, each from a translation unit of its
// own: kernels are nearly all that there is to compile, and units are compiled side by side.
//
// Such a function is itself compiled with the instruction set's flags, and may only be called where
// that runs.
#pragma once

#include "kernels/kernel.hpp"

namespace dmlops::DMLOPS_TARGET {

void set_kernels(KernelTable& table);  // all of them: table.cpp

void set_activations(KernelTable& table);           // activation.cpp
void set_batch_normalizations(KernelTable& table);  // batch_normalization.cpp
void set_clip(KernelTable& table);                  // clip.cpp, with all else that moves integers
void set_log_softmax(KernelTable& table);           // log_softmax.cpp

void set_byte_kernels(KernelTable& table);  // those that VBMI does better: table_vbmi.cpp

}  // namespace dmlops::DMLOPS_TARGET
