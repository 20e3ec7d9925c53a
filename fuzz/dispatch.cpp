// Fuzzes compiled operators on memory between guard pages: results match the definitions, bits are
// equal on every instruction set, no byte is written outside of the elements, and none if refused.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "any_desc.hpp"
#include "dmlops/runtime.hpp"
#include "guarded_memory.hpp"
#include "reference.hpp"

namespace dmlops::fuzz {
namespace {

constexpr int kTensors = OperatorDesc::kMaxTensors;

void require(bool condition) {
  if (!condition) std::abort();
}

// Draws a parameter within the range of an activation's error bound.
float parameter(FuzzedDataProvider& bytes) {
  constexpr float values[] = {0.0f, 0.01f, 0.2f, 0.5f, 1.0f, 1.5f, 3.0f, -0.5f, -1.0f, -2.0f};
  return bytes.PickValueInArray(values);
}

std::uint32_t any_size(FuzzedDataProvider& bytes, std::uint32_t rank) {
  const bool small = bytes.ConsumeIntegralInRange<std::uint32_t>(0, rank) > 0;
  return small ? bytes.ConsumeIntegralInRange<std::uint32_t>(1, 4)
               : bytes.ConsumeIntegralInRange<std::uint32_t>(1, 80);
}

// Sizes of up to kElements elements: half of the time mostly small; otherwise as
// `dmlops bench --random` draws them, the number of elements and each size uniform in its
// logarithm.
void set_sizes(FuzzedDataProvider& bytes, BufferTensorDesc& tensor) {
  constexpr std::uint32_t kElements = 1500, kEighths = 84;  // of log2(kElements)
  const std::uint32_t rank = tensor.dimension_count;
  const bool logarithmic = bytes.ConsumeBool();
  const std::uint32_t first = bytes.ConsumeIntegralInRange<std::uint32_t>(0, rank - 1);
  std::uint32_t elements = 1, eighths = bytes.ConsumeIntegralInRange<std::uint32_t>(0, kEighths);
  for (std::uint32_t d = 0; d < rank; ++d) {
    std::uint32_t& size = tensor.sizes[(first + d) % rank];
    if (logarithmic) {
      const std::uint32_t taken =
          d + 1 == rank ? eighths : bytes.ConsumeIntegralInRange<std::uint32_t>(0, eighths);
      eighths -= taken;
      size = static_cast<std::uint32_t>(std::lround(std::exp2(taken / 8.0)));
    } else {
      size = any_size(bytes, rank);
    }
    size = std::min(size, std::max(1u, kElements / elements));
    elements *= size;
  }
}

// Strides in elements: axes in any order, dense or with steps and gaps; inputs also with broadcast
// dimensions, or with small random strides.
void set_strides(FuzzedDataProvider& bytes, BufferTensorDesc& tensor, bool output) {
  if (bytes.ConsumeIntegralInRange<int>(0, 3) == 0) return;
  BufferTensorDesc::Dimensions& strides = tensor.strides.emplace();
  if (bytes.ConsumeIntegralInRange<int>(0, 7) == 0) {
    for (std::uint32_t& stride : strides)
      stride = bytes.ConsumeIntegralInRange<std::uint32_t>(0, 40);
    return;
  }
  std::uint32_t order[kMaxRank];  // the fastest axis first
  const std::uint32_t rank = tensor.dimension_count;
  for (std::uint32_t d = 0; d < rank; ++d) order[d] = rank - 1 - d;
  if (bytes.ConsumeBool()) {
    for (std::uint32_t d = rank; d-- > 1;) {
      std::swap(order[d], order[bytes.ConsumeIntegralInRange<std::uint32_t>(0, d)]);
    }
  }
  const bool gaps = bytes.ConsumeBool(), steps = bytes.ConsumeBool();
  std::uint32_t run = 1;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const std::uint32_t axis = order[d];
    if (gaps) {
      const bool wide = bytes.ConsumeIntegralInRange<int>(0, 7) == 0;
      run += bytes.ConsumeIntegralInRange<std::uint32_t>(0, wide ? 16 : 2);
    }
    if (steps && bytes.ConsumeIntegralInRange<int>(0, 2) == 0) {
      constexpr std::uint32_t factors[] = {2, 3, 4, 8};
      run *= bytes.PickValueInArray(factors);
    }
    const bool repeated = !output && bytes.ConsumeIntegralInRange<int>(0, 5) == 0;
    strides[axis] = repeated ? 0 : run;
    run *= repeated ? 1 : tensor.sizes[axis];
  }
}

// A valid or almost valid descriptor.
OperatorDesc plausible_desc(FuzzedDataProvider& bytes) {
  OperatorDesc desc;
  // Half of the time an operator with special loops, mostly of the softmax family.
  constexpr OperatorType special[] = {
      OperatorType::activation_log_softmax1, OperatorType::activation_log_softmax1,
      OperatorType::activation_softmax1,     OperatorType::activation_hardmax1,
      OperatorType::batch_normalization,     OperatorType::element_wise_clip,
      OperatorType::element_wise_clip1};
  desc.type = bytes.ConsumeBool() ? bytes.PickValueInArray(special) : any_operator(bytes).type;
  const OperatorInfo& op = *find_operator(desc.type);
  BufferTensorDesc input;
  constexpr DataType types[] = {
      DataType::float32, DataType::float16, DataType::int8,   DataType::uint8, DataType::int16,
      DataType::uint16,  DataType::int32,   DataType::uint32, DataType::int64, DataType::uint64};
  const bool clips = op.family == Family::clip;
  const std::size_t kinds =
      clips || bytes.ConsumeIntegralInRange<int>(0, 7) == 0 ? std::size(types) : 2;
  input.data_type = types[bytes.ConsumeIntegralInRange<std::size_t>(0, kinds - 1)];
  input.dimension_count = bytes.ConsumeIntegralInRange<std::uint32_t>(1, 8);
  set_sizes(bytes, input);
  for (int i = 0; i < op.tensor_count(); ++i) {
    const Field& field = op.fields[i];
    if (field.optional && bytes.ConsumeBool()) continue;
    BufferTensorDesc& tensor = desc.tensors[static_cast<std::size_t>(i)].emplace(input);
    const bool output = field.kind == FieldKind::output;
    if (field.like != 0) tensor.sizes = desc.tensors[static_cast<std::size_t>(field.like)]->sizes;
    for (std::uint32_t d = 0; field.kind == FieldKind::parameter && d < input.dimension_count;
         ++d) {
      if (bytes.ConsumeBool()) tensor.sizes[d] = 1;
    }
    set_strides(bytes, tensor, output);
    if (!output && bytes.ConsumeIntegralInRange<int>(0, 7) == 0) {
      tensor.flags = TensorFlags::owned_by_dml;
    }
  }
  const bool curved = op.family == Family::activation;
  for (float& number : desc.numbers) number = curved ? parameter(bytes) : any_float(bytes);
  for (const Field& field : op) {
    if (field.name == std::string("epsilon")) desc.numbers[0] = 1e-5f;
  }
  if (op.has(FieldKind::boolean)) {
    for (bool& boolean : desc.booleans) boolean = bytes.ConsumeBool();
  }
  desc.min_max_data_type = input.data_type;
  for (ScalarUnion& scalar : desc.scalars) scalar.bits = bytes.ConsumeIntegral<std::uint64_t>();
  if (bytes.ConsumeBool()) {
    const float scale = any_float(bytes);
    desc.scale_bias = ScaleBias{scale, any_float(bytes)};
  }
  const std::uint32_t rank = input.dimension_count;
  if (bytes.ConsumeBool()) {
    desc.axes = {bytes.ConsumeIntegralInRange<std::uint32_t>(0, rank - 1)};
  } else {
    const auto axes = bytes.ConsumeIntegral<std::uint8_t>();
    const std::uint32_t known = bytes.ConsumeIntegralInRange<int>(0, 7) == 0 ? kMaxRank : rank;
    for (std::uint32_t axis = 0; axis < known; ++axis) {
      if ((axes >> axis & 1) != 0) desc.axes.push_back(axis);
    }
  }
  if (op.has(FieldKind::activation) && bytes.ConsumeBool()) {
    OperatorDesc fused;
    do {
      fused.type = any_operator(bytes).type;
    } while (!find_operator(fused.type)->is_fusable && bytes.remaining_bytes() > 0);
    for (float& number : fused.numbers) number = parameter(bytes);
    desc.fused_activation = std::make_shared<const OperatorDesc>(fused);
  }
  return desc;
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
    const int inputs = op_.inputs;
    std::vector<ConstBinding> bound(static_cast<std::size_t>(inputs)), initial;
    bool owned = false;
    for (int i = 0; i < op_.tensor_count(); ++i) {
      if (is_absent(i) || (in_place_ && i == inputs)) continue;
      std::fill(operands_[i].memory->begin(), operands_[i].memory->end(), kCanary);
      std::copy(operands_[i].content.begin(), operands_[i].content.end(), operands_[i].begin);
    }
    for (int i = 0; i < inputs; ++i) {
      owned = owned || is_owned(i);
      if (!is_owned(i) && !is_absent(i)) bound[static_cast<std::size_t>(i)] = binding(i);
    }
    if (owned) {
      for (int i = 0; i < inputs; ++i) initial.push_back(is_owned(i) ? binding(i) : ConstBinding());
    }
    const CompiledOperator compiled = Device().compile(desc_, initial);
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
    for (int i = 0; i < inputs; ++i) {  // inputs are not written
      if (is_absent(i) || (in_place_ && i == 0)) continue;
      require(
          std::equal(operands_[i].content.begin(), operands_[i].content.end(), operands_[i].begin));
    }
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
