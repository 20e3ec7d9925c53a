// The golden digests for C++: the cases of tests/golden.txt, their inputs and their digests, as in
// tests/golden.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "descriptors/table.hpp"
#include "dmlops/device.hpp"

namespace dmlops {

// A dense tensor that owns its memory.
struct GoldenTensor {
  std::string name;  // "scale_tensor"
  DataType type = DataType::unknown;
  std::vector<std::int64_t> sizes;
  std::vector<char> bytes;

  std::size_t count() const { return bytes.size() / element_size(type); }
};

// A line of the file.
struct GoldenCase {
  std::string line, operator_name;
  DataType type = DataType::unknown;
  std::vector<std::int64_t> sizes;
  std::string recipe;
  std::map<std::string, std::string> parameters;
  std::uint64_t digest = 0;

  // The inputs that the call has.
  std::vector<GoldenTensor> inputs() const;

  // The outputs, whose bytes are 0x77 before the call.
  std::vector<GoldenTensor> outputs() const;

  // Calls the function.
  void call(const std::vector<ConstTensorView>& inputs,
            const std::vector<TensorView>& outputs) const;

  // The descriptor for dense tensors.
  OperatorDesc descriptor() const;

 private:
  const OperatorInfo& info() const;
  bool lacks(const std::string& tensor) const;
  std::vector<std::int64_t> axes(const char* name = "axes") const;
  std::vector<std::int64_t> sizes_of(const std::string& tensor) const;
  float number(const char* name, float otherwise) const;
  bool flag(const char* name) const;
  Scalar bound(const char* name) const;
  ScalarUnion scalar(const char* name, double otherwise) const;
  Activation activation_type() const;
  ActivationParameters activation_parameters() const;
  std::optional<FusedActivation> fused_activation() const;
};

std::vector<GoldenCase> golden_cases(const std::string& path);

// The sum of all elements' bits, each hashed with its index; the tensors' elements follow one
// another.
std::uint64_t golden_digest(const std::vector<GoldenTensor>& tensors);

}  // namespace dmlops
