#include "golden_cases.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "core/float16.hpp"
#include "descriptors/table.hpp"

namespace dmlops {
namespace {

const char* const kNormalizationTensors[] = {"mean", "variance", "scale", "bias"};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<std::int64_t> integers(const std::string& text, char separator) {
  std::vector<std::int64_t> numbers;
  for (const std::string& part : split(text, separator)) numbers.push_back(std::stoll(part));
  return numbers;
}

DataType type_of(const std::string& text) {
  for (std::uint32_t i = 1; i < kDataTypeCount; ++i) {
    if (text == name(static_cast<DataType>(i))) return static_cast<DataType>(i);
  }
  throw std::runtime_error("no data type: " + text);
}

// The finalizer of splitmix64.
std::uint64_t finalized(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::uint64_t counter(std::uint64_t place, std::uint64_t seed) {
  return (place + 1 + (seed << 32)) * 0x9e3779b97f4a7c15u;
}

// A recipe of golden.py: name, seed, low, high.
struct Recipe {
  bool any, mixed;
  std::uint64_t seed;
  std::int64_t low = 0, high = 1;

  explicit Recipe(const std::string& text) {
    const std::vector<std::string> parts = split(text, ':');
    any = parts.at(0) == "any";
    mixed = parts[0] == "mixed";
    seed = std::stoull(parts.at(1));
    if (parts.size() == 4) low = std::stoll(parts[2]), high = std::stoll(parts[3]);
  }

  std::uint64_t bits(std::uint64_t place, DataType type) const {
    const std::uint64_t hash = finalized(counter(place, seed));
    const std::size_t width = 8 * element_size(type);
    const std::uint64_t bits = hash >> (64 - width);
    if (any || !is_floating_point(type) || (mixed && place % 2 == 0)) return bits;
    const int mantissa = type == DataType::float32 ? 23 : 10;
    const std::int64_t bias = type == DataType::float32 ? 127 : 15;
    const std::uint64_t pick = (hash & 0xffff) * static_cast<std::uint64_t>(high - low) >> 16;
    const std::uint64_t exponent = pick + static_cast<std::uint64_t>(low + bias);
    const std::uint64_t field = (std::uint64_t{1} << (width - 1)) - (std::uint64_t{1} << mantissa);
    return (bits & ~field) | exponent << mantissa;
  }
};

GoldenTensor tensor(const Recipe& recipe, DataType type, const std::vector<std::int64_t>& sizes,
                    bool positive = false) {
  GoldenTensor result;
  result.type = type;
  result.sizes = sizes;
  const std::size_t size = element_size(type);
  std::size_t count = 1;
  for (const std::int64_t n : sizes) count *= static_cast<std::size_t>(n);
  result.bytes.resize(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = recipe.bits(i, type);
    if (positive) bits &= (std::uint64_t{1} << (8 * size - 1)) - 1;
    for (std::size_t b = 0; b < size; ++b) {
      result.bytes[i * size + b] = static_cast<char>(bits >> (8 * b));
    }
  }
  return result;
}

BufferTensorDesc described(DataType type, const std::vector<std::int64_t>& sizes) {
  BufferTensorDesc result;
  result.data_type = type;
  result.dimension_count = static_cast<std::uint32_t>(sizes.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    result.sizes[d] = static_cast<std::uint32_t>(sizes[d]);
  }
  return result;
}

// The type of the descriptor that fits the activation.
OperatorType operator_type(Activation activation) {
  for (const OperatorInfo& op : operators()) {
    if (op.family == Family::activation && op.activation == activation) return op.type;
  }
  return OperatorType::invalid;
}

// The softmax family: functions over axes.
struct Softmax {
  const char* name;
  OperatorType type;
  void (*function)(const ConstTensorView& input, const std::int64_t* axes, std::size_t axis_count,
                   const TensorView& output);
};

// Returns null if the operator is not one of them.
const Softmax* softmax_named(const std::string& name) {
  static constexpr Softmax kSoftmaxes[] = {
      {"log_softmax", OperatorType::activation_log_softmax1, &log_softmax},
      {"softmax", OperatorType::activation_softmax1, &softmax},
      {"hardmax", OperatorType::activation_hardmax1, &hardmax},
  };
  const auto* const found =
      std::find_if(std::begin(kSoftmaxes), std::end(kSoftmaxes),
                   [&](const Softmax& candidate) { return name == candidate.name; });
  return found == std::end(kSoftmaxes) ? nullptr : found;
}

}  // namespace

bool GoldenCase::elementwise() const {
  return operator_name != "batch_normalization" && softmax_named(operator_name) == nullptr;
}

std::vector<std::int64_t> GoldenCase::axes() const { return integers(parameters.at("axes"), '+'); }

float GoldenCase::number(const char* name, float otherwise) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return otherwise;
  return static_cast<float>(std::strtod(found->second.c_str(), nullptr));
}

Scalar GoldenCase::bound(const char* name) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return Scalar();
  const std::string& text = found->second;
  if (is_floating_point(type)) return Scalar(std::strtod(text.c_str(), nullptr));
  if (text[0] == '-') return Scalar(std::int64_t{std::stoll(text)});
  return Scalar(std::uint64_t{std::stoull(text)});
}

ScalarUnion GoldenCase::scalar(const char* name, double otherwise) const {
  const Scalar value = bound(name);
  if (value.type == DataType::int64) return {static_cast<std::uint64_t>(value.integer)};
  if (value.type == DataType::uint64) return {value.natural};
  const double number = value.type == DataType::unknown ? otherwise : value.floating;
  if (type == DataType::float16) return {to_float16(number).bits};
  const auto rounded = static_cast<float>(number);
  std::uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return {bits};
}

Activation GoldenCase::activation_type() const {
  const auto fused = parameters.find("fused");
  const std::string& wanted = fused == parameters.end() ? operator_name : fused->second;
  for (std::uint32_t i = 0; i < kActivationCount; ++i) {
    const auto candidate = static_cast<Activation>(i);
    if (wanted == info(candidate).name) return candidate;
  }
  throw std::runtime_error("no activation: " + wanted);
}

ActivationParameters GoldenCase::activation_parameters() const {
  const ActivationInfo& known = info(activation_type());
  ActivationParameters result = known.defaults;
  if (known.parameter_count > 0) result.alpha = number(known.parameter_names[0], kNan);
  if (known.parameter_count > 1) result.beta = number(known.parameter_names[1], kNan);
  return result;
}

std::vector<GoldenTensor> GoldenCase::inputs() const {
  std::vector<GoldenTensor> result = {tensor(Recipe(recipe), type, sizes)};
  if (operator_name != "batch_normalization") return result;
  std::vector<std::int64_t> varying(sizes.size(), 1);
  for (const std::int64_t axis : axes()) {
    varying[static_cast<std::size_t>(axis)] = sizes[static_cast<std::size_t>(axis)];
  }
  Recipe near("near:0:-3:3");
  near.seed = Recipe(recipe).seed;
  for (const std::string tensor_name : kNormalizationTensors) {
    ++near.seed;
    result.push_back(tensor(near, type, varying, tensor_name == "variance"));
  }
  return result;
}

void GoldenCase::call(const std::vector<ConstTensorView>& in, const TensorView& output) const {
  if (operator_name == "clip") {
    std::optional<ScaleBias> scale_bias;
    if (parameters.count("scale") != 0) {
      scale_bias = ScaleBias{number("scale", kNan), number("scale_bias", kNan)};
    }
    clip(in[0], bound("min"), bound("max"), scale_bias, output);
  } else if (const Softmax* const found = softmax_named(operator_name)) {
    const std::vector<std::int64_t> reduced = axes();
    found->function(in[0], reduced.data(), reduced.size(), output);
  } else if (operator_name == "batch_normalization") {
    std::optional<FusedActivation> fused;
    if (parameters.count("fused") != 0) fused = {activation_type(), activation_parameters()};
    batch_normalization({in[0], in[1], in[2], in[3], in[4]}, number("epsilon", kNan), fused,
                        output);
  } else {
    activation(activation_type(), in[0], activation_parameters(), output);
  }
}

OperatorDesc GoldenCase::descriptor() const {
  OperatorDesc desc;
  const std::vector<GoldenTensor> in = inputs();
  for (std::size_t i = 0; i < in.size(); ++i) desc.tensors[i] = described(type, in[i].sizes);
  desc.tensors[in.size()] = described(type, sizes);
  if (operator_name == "clip") {
    desc.type = OperatorType::element_wise_clip1;
    desc.min_max_data_type = type;
    desc.scalars = {scalar("min", -kInfinity), scalar("max", kInfinity)};
    if (parameters.count("scale") != 0) {
      desc.scale_bias = ScaleBias{number("scale", kNan), number("scale_bias", kNan)};
    }
  } else if (const Softmax* const found = softmax_named(operator_name)) {
    desc.type = found->type;
    for (const std::int64_t axis : axes()) desc.axes.push_back(static_cast<std::uint32_t>(axis));
  } else if (operator_name == "batch_normalization") {
    desc.type = OperatorType::batch_normalization;
    desc.numbers = {number("epsilon", kNan), 0};
    if (parameters.count("fused") != 0) {
      OperatorDesc fused;
      fused.type = operator_type(activation_type());
      fused.numbers = {activation_parameters().alpha, activation_parameters().beta};
      desc.fused_activation = std::make_shared<const OperatorDesc>(fused);
    }
  } else {
    desc.type = operator_type(activation_type());
    desc.numbers = {activation_parameters().alpha, activation_parameters().beta};
  }
  return desc;
}

std::vector<GoldenCase> golden_cases(const std::string& path) {
  std::vector<GoldenCase> cases;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    GoldenCase found;
    std::string type, sizes, parameters, digest;
    std::istringstream(line) >> found.operator_name >> type >> sizes >> found.recipe >>
        parameters >> digest;
    found.line = line;
    found.type = type_of(type);
    found.sizes = integers(sizes, 'x');
    for (const std::string& pair : split(parameters == "-" ? "" : parameters, ',')) {
      const std::size_t equals = pair.find('=');
      found.parameters[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    found.digest = std::stoull(digest, nullptr, 16);
    cases.push_back(found);
  }
  return cases;
}

std::uint64_t golden_digest(const char* bytes, std::size_t count, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    for (std::size_t b = 0; b < size; ++b) {
      bits |= std::uint64_t{static_cast<unsigned char>(bytes[i * size + b])} << (8 * b);
    }
    sum += finalized(counter(i, 0) + bits);
  }
  return sum;
}

}  // namespace dmlops
