// Fuzzes compiled operators on memory between guard pages: the first output matches its definition,
// bits are equal on every instruction set, no byte is written outside of the elements, and none if
// refused.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "dmlops/runtime.hpp"
#include "guarded_memory.hpp"
#include "plausible_desc.hpp"
#include "reference.hpp"

namespace dmlops::fuzz {
namespace {

constexpr int kTensors = OperatorDesc::kMaxTensors;

void require(bool condition) {
  if (!condition) std::abort();
}

// Half of the time values of random bits, otherwise of moderate magnitude.
void fill(FuzzedDataProvider& bytes, const BufferTensorDesc& tensor, char* memory,
          std::size_t size) {
  const bool ordinary = bytes.ConsumeBool() && is_floating_point(tensor.data_type);
  auto state = bytes.ConsumeIntegral<std::uint64_t>() | 1;
  for (std::size_t i = 0; i < size; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    memory[i] = static_cast<char>(state >> 56);
    const bool top = (i + 1) % element_size(tensor.data_type) == 0;
    if (!ordinary || !top) continue;
    const bool half = tensor.data_type == DataType::float16;
    memory[i] = static_cast<char>((memory[i] & 0x80) | (half ? 0x3c : 0x3f) + (memory[i] & 3));
  }
}

struct Operand {
  std::size_t size = 0;  // bytes that are bound
  std::uint64_t offset = 0;
  char* begin = nullptr;  // of the elements
  const GuardedMemory* memory = nullptr;
  std::vector<char> content;

  void* buffer() const { return begin - offset; }
};

// Marks the bytes of the output that belong to elements.
std::vector<bool> elements_of(const BufferTensorDesc& tensor, std::size_t size) {
  std::vector<bool> written(size);
  std::vector<std::uint32_t> index(tensor.dimension_count);
  const std::size_t width = element_size(tensor.data_type);
  for (;;) {
    std::size_t offset = 0, packed = 1;
    for (std::size_t d = tensor.dimension_count; d-- > 0;) {
      offset += index[d] * (tensor.strides ? (*tensor.strides)[d] : packed);
      packed *= tensor.sizes[d];
    }
    for (std::size_t b = 0; b < width; ++b) written[offset * width + b] = true;
    std::size_t d = 0;
    while (d < index.size() && ++index[d] == tensor.sizes[d]) index[d++] = 0;
    if (d == index.size()) return written;
  }
}

// Runs the operator for one instruction set, every binding adjacent to its guard page.
class Call {
 public:
  Call(FuzzedDataProvider& bytes, const OperatorDesc& desc)
      : desc_(desc), op_(*find_operator(desc.type)) {
    for (int i = 0; i < op_.tensor_count(); ++i) {
      static const GuardedMemory memory[kTensors];
      if (is_absent(i)) continue;
      Operand& operand = operands_[i];
      const BufferTensorDesc& tensor = *desc.tensors[static_cast<std::size_t>(i)];
      // The tensor's size without the rounding of DMLCalcBufferTensorSize.
      operand.size = extent(tensor) * element_size(tensor.data_type);
      operand.offset =
          bytes.ConsumeBool() ? 0 : 16 * bytes.ConsumeIntegralInRange<std::uint32_t>(0, 4);
      fits_ = fits_ && operand.size + operand.offset <= GuardedMemory::kCapacity;
      if (!fits_) return;
      const bool at_end = bytes.ConsumeBool();
      operand.memory = &memory[i];
      operand.begin = memory[i].place(operand.size, at_end);
      operand.content.resize(operand.size);
      fill(bytes, tensor, operand.content.data(), operand.size);
    }
    const int output = op_.inputs;
    in_place_ = bytes.ConsumeIntegralInRange<int>(0, 3) == 0;
    const bool owned = desc.tensors[0]->flags == TensorFlags::owned_by_dml;
    in_place_ = in_place_ && !owned && operands_[0].size == operands_[output].size;
    if (in_place_) operands_[output] = operands_[0];
    spoiled_ = bytes.ConsumeIntegralInRange<int>(0, 15);
  }

  bool fits() const { return fits_; }

  static std::size_t extent(const BufferTensorDesc& tensor) {
    std::size_t last = 0, packed = 1;
    for (std::size_t d = tensor.dimension_count; d-- > 0;) {
      last += (tensor.sizes[d] - std::size_t{1}) * (tensor.strides ? (*tensor.strides)[d] : packed);
      packed *= tensor.sizes[d];
    }
    return last + 1;
  }

  // The output's bytes; empty if the bindings were refused.
  std::vector<char> run() {
    fill_memory();
    const CompiledOperator compiled = compile();
    const int inputs = op_.inputs;
    std::vector<ConstBinding> bound(static_cast<std::size_t>(inputs));
    for (int i = 0; i < inputs; ++i) {
      if (!is_owned(i) && !is_absent(i)) bound[static_cast<std::size_t>(i)] = binding(i);
    }
    std::vector<Binding> targets;
    for (int i = inputs; i < op_.tensor_count(); ++i) {
      targets.push_back({operands_[i].buffer(), operands_[i].offset, operands_[i].size, true});
    }
    Binding& target = targets[0];
    if (spoiled_ == 1) --target.size_in_bytes;
    if (spoiled_ == 2) ++target.offset;
    if (spoiled_ == 3) bound[0] = {};
    bool refused = false;
    try {
      compiled.dispatch(bound.data(), bound.size(), targets.data(), targets.size());
    } catch (const BindingError&) {
      refused = true;
    }
    const bool spoiled =
        spoiled_ == 1 || spoiled_ == 2 || (spoiled_ == 3 && !is_owned(0)) || !may_share();
    require(refused == spoiled);
    std::vector<char> results;
    for (int i = inputs; i < op_.tensor_count(); ++i) {
      const std::vector<char> result = written_by(i, refused);
      results.insert(results.end(), result.begin(), result.end());
    }
    require_unchanged_inputs();
    return refused ? std::vector<char>() : results;
  }

  void check(const std::vector<char>& result) const {
    // Of several outputs, the first one is compared.
    std::vector<Values> inputs(static_cast<std::size_t>(op_.inputs));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (desc_.tensors[i]) inputs[i] = read(*desc_.tensors[i], operands_[i].content.data());
    }
    const BufferTensorDesc& output = *desc_.tensors[static_cast<std::size_t>(op_.inputs)];
    check_result(desc_, inputs, read(output, result.data()));
  }

 private:
  void fill_memory() {
    for (int i = 0; i < op_.tensor_count(); ++i) {
      if (is_absent(i) || (in_place_ && i == op_.inputs)) continue;
      std::fill(operands_[i].memory->begin(), operands_[i].memory->end(), kCanary);
      std::copy(operands_[i].content.begin(), operands_[i].content.end(), operands_[i].begin);
    }
  }

  CompiledOperator compile() const {
    std::vector<ConstBinding> initial;
    bool owned = false;
    for (int i = 0; i < op_.inputs; ++i) {
      owned = owned || is_owned(i);
      initial.push_back(is_owned(i) ? binding(i) : ConstBinding());
    }
    if (!owned) initial.clear();
    return Device().compile(desc_, initial);
  }

  void require_unchanged_inputs() const {
    for (int i = 0; i < op_.inputs; ++i) {
      if (is_absent(i) || (in_place_ && i == 0)) continue;
      require(
          std::equal(operands_[i].content.begin(), operands_[i].content.end(), operands_[i].begin));
    }
  }

  // The output's bytes; requires those around them to be untouched.
  std::vector<char> written_by(int i, bool refused) const {
    const Operand& output = operands_[i];
    const std::vector<char> result(output.begin, output.begin + output.size);
    const std::vector<bool> written =
        elements_of(*desc_.tensors[static_cast<std::size_t>(i)], output.size);
    for (std::size_t k = 0; k < result.size(); ++k) {
      if (refused || !written[k]) require(result[k] == output.content[k]);
    }
    static const std::vector<char> canaries(GuardedMemory::kCapacity, kCanary);
    const auto untouched = [](const char* begin, const char* end) {
      return std::memcmp(begin, canaries.data(), static_cast<std::size_t>(end - begin)) == 0;
    };
    require(untouched(output.memory->begin(), output.begin));
    require(untouched(output.begin + output.size, output.memory->end()));
    return result;
  }

  bool is_absent(int i) const { return !desc_.tensors[static_cast<std::size_t>(i)].has_value(); }
  bool is_owned(int i) const {
    return !is_absent(i) &&
           desc_.tensors[static_cast<std::size_t>(i)]->flags == TensorFlags::owned_by_dml;
  }
  ConstBinding binding(int i) const {
    return {operands_[i].buffer(), operands_[i].offset, operands_[i].size, true};
  }
  bool may_share() const {
    if (!in_place_) return true;
    if (!op_.in_place) return false;
    const BufferTensorDesc& a = *desc_.tensors[0];
    const BufferTensorDesc& b = *desc_.tensors[static_cast<std::size_t>(op_.inputs)];
    std::uint32_t packed_a = 1, packed_b = 1;
    for (std::size_t d = a.dimension_count; d-- > 0;) {
      const std::uint32_t left = a.strides ? (*a.strides)[d] : packed_a;
      const std::uint32_t right = b.strides ? (*b.strides)[d] : packed_b;
      if (a.sizes[d] > 1 && left != right) return false;
      packed_a *= a.sizes[d];
      packed_b *= b.sizes[d];
    }
    return true;
  }

  static constexpr char kCanary = 0x5a;

  const OperatorDesc& desc_;
  const OperatorInfo& op_;
  Operand operands_[kTensors];
  bool fits_ = true;
  bool in_place_ = false;
  int spoiled_ = 0;
};

void check(FuzzedDataProvider& bytes) {
  const OperatorDesc desc = plausible_desc(bytes);
  try {
    validate(desc, FeatureLevel::level_6_4);
  } catch (const ValidationError&) {
    return;
  }
  Call call(bytes, desc);
  if (!call.fits()) return;
  static const std::vector<std::string> isas = available_isas();
  std::vector<char> first;
  for (const std::string& isa : isas) {
    set_isa(isa);
    const std::vector<char> result = call.run();
    if (isa == isas.front()) first = result;
    require(result == first);
  }
  if (!first.empty()) call.check(first);
}

}  // namespace
}  // namespace dmlops::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider bytes(data, size);
  dmlops::fuzz::check(bytes);
  return 0;
}
