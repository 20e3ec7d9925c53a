// Overlaps of views, and copies of inputs that overlap an output.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "dmlops/tensor.hpp"

namespace dmlops {

// True if an element of one view shares bytes with an element of the other. The views have one
// type. Layouts that are too costly to analyze count as overlapping.
bool overlap(const ConstTensorView& a, const ConstTensorView& b);

// True if two elements of a view share bytes. Layouts that are too costly to analyze count as
// overlapping.
bool overlaps_itself(const ConstTensorView& view);

// The input itself if input and output are disjoint or identical, and a dense copy of the input
// otherwise.
class ReadableInput {
 public:
  ReadableInput(const ConstTensorView& input, const TensorView& output);
  const ConstTensorView& view() const { return copy_ == nullptr ? input_ : view_; }

 private:
  const ConstTensorView& input_;
  std::unique_ptr<char[]> copy_;
  ConstTensorView view_;  // of the copy
};

// Inputs that can be read while several outputs are written.
class ReadableInputs {
 public:
  ReadableInputs(std::initializer_list<TensorView> outputs) : outputs_(outputs) {}
  // Returns the input itself, or a dense copy if it partly overlaps an output.
  const ConstTensorView* add(const ConstTensorView& input);

 private:
  std::vector<TensorView> outputs_;
  std::vector<std::unique_ptr<ReadableInput>> kept_;
};

}  // namespace dmlops
