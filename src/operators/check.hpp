// The rules that the operators share, with the words for what breaks them, and the copies that
// overlapping tensors need.
#pragma once

#include <memory>
#include <string>

#include "dmlops/operators.hpp"

namespace dmlops {

std::string number_text(double value);                // as short as it can be read back
std::string shape_text(const ConstTensorView& view);  // "(2, 3)", as Python writes it

// What the operators take, in words.
extern const char* const kFloatTypesText;
extern const char* const kClipTypesText;
const char* accepted_types(Activation type);
bool takes(Activation type, DataType data);

// Throws Error unless `type` is an enumerator: the value indexes tables. `where`
// begins the message: "activation: ".
void require_known(const char* where, Activation type);

// Throws Error unless rank and sizes are a tensor's, and the strides keep all of it within the
// addresses that a process can have: offsets computed from them do not wrap.
void require_addressable(const char* op, const char* argument, const ConstTensorView& view);

// Throws Error for a null pointer to elements. The view must be addressable.
void require_data(const char* op, const char* argument, const ConstTensorView& view);

// Throws Error unless the input is addressable and has data.
void require_input(const char* op, const ConstTensorView& input);

// Throws TypeError unless the type is float32 or float16.
void require_floating_point(const char* op, const char* argument, const ConstTensorView& view);

// Throws TypeError unless both have the same data type.
void require_same_type(const char* op, const char* argument, const ConstTensorView& view,
                       const ConstTensorView& input);

// Throws unless the output is addressable, has data, the type and sizes of the input, and elements
// that do not overlap.
void require_output(const char* op, const ConstTensorView& output, const ConstTensorView& input);

// The types and shapes of batch normalization's inputs; needs no data.
void check_batch_normalization(const BatchNormalizationInputs& inputs);

bool is_empty(const ConstTensorView& view);

// Do two elements share bytes? What is too intricate to find out counts as if they did.
bool overlaps_itself(const ConstTensorView& view);

// The input itself where it and the output are apart or the very same; otherwise a dense copy of
// it.
class ReadableInput {
 public:
  ReadableInput(const ConstTensorView& input, const TensorView& output);
  const ConstTensorView& view() const { return copy_ == nullptr ? input_ : view_; }

 private:
  const ConstTensorView& input_;
  std::unique_ptr<char[]> copy_;
  ConstTensorView view_;  // of the copy
};

}  // namespace dmlops
