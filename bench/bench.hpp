// What the benchmark programs share: tensors of any layout, names, and registration for each
// instruction set.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dmlops/operators.hpp"

namespace dmlops::bench {

using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;

// A tensor with memory of its own, filled with numbers from -4 to 4 (integers: with any bits).
class Tensor {
 public:
  // `strides` in elements, none of them negative; without them the tensor is dense, the last
  // dimension fastest.
  Tensor(DataType type, const Shape& sizes, const Shape& strides = {});
  operator TensorView() const { return view_; }
  operator ConstTensorView() const { return view_; }

 private:
  std::shared_ptr<char> memory_;  // shared: the closures that hold tensors are copied
  TensorView view_;
};

const char* short_name(DataType type);  // "f32"
std::int64_t bytes_of(DataType type, const Shape& sizes);

// The coordinates of a measurement: together with the instruction set, its name.
struct Place {
  std::string op;
  DataType type;
  std::string layout;
  Shape sizes;  // of the output, whose bytes are the size that the name ends in
};

// Makes what is measured once it is time to: a function that does the work one time.
using Work = std::function<void()>;
using MakeWork = std::function<Work()>;

// Registers "op/type/isa/layout/size" for each instruction set of this processor. `traffic`: bytes
// read and written.
void add(const Place& place, std::int64_t traffic, const MakeWork& make);

// The same for an operator with one input, dense or with the given strides, and a dense output.
using Unary = std::function<void(const ConstTensorView& input, const TensorView& output)>;
void add_unary(const Place& place, const Unary& call, const Shape& input_strides = {});

// Registers "memcpy/size", which says what the memory gives for that many bytes of input and output
// each.
void add_memcpy(std::int64_t bytes);

// One operator on dense vectors that fit into the first, second and third cache, and into none;
// memcpy beside them.
void add_dense(const std::string& op, const std::vector<DataType>& types, const Unary& call);

// What a program measures; each defines it, and bench.cpp has their main function.
void add_benchmarks();

}  // namespace dmlops::bench
