// Shared code of the benchmark programs: tensors of any layout, names, and registration for each
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

// A tensor that owns its memory, filled with numbers from -4 to 4 (integers: random bits).
class Tensor {
 public:
  // `strides` are in elements and not negative; without them the tensor is dense, in row-major
  // order.
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
  Shape sizes;  // of the output; the name ends in its size in bytes
};

// Creates the measured function, which does the work once. Called just before the measurement.
using Work = std::function<void()>;
using MakeWork = std::function<Work()>;

// Registers "op/type/isa/layout/size" for each instruction set of this processor. `traffic` counts
// the bytes read and written.
void add(const Place& place, std::int64_t traffic, const MakeWork& make);

// Registers an operator with one input, dense or with the given strides, and a dense output.
using Unary = std::function<void(const ConstTensorView& input, const TensorView& output)>;
void add_unary(const Place& place, const Unary& call, const Shape& input_strides = {});

// Registers "memcpy/size", the roofline for that many bytes of input and of output.
void add_memcpy(std::int64_t bytes);

// Registers an operator on dense vectors that fit L1, L2, the LLC and no cache, and memcpy.
void add_dense(const std::string& op, const std::vector<DataType>& types, const Unary& call);

// Registers the measurements of a program. Each program defines it; bench.cpp has main().
void add_benchmarks();

}  // namespace dmlops::bench
