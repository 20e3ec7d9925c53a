#include "golden_cases.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "core/float16.hpp"

namespace dmlops {
namespace {

// The tensors that have the input's sizes; a normalization's other tensors have a value per group.
const char* const kWhole[] = {"input_tensor", "input_gradient_tensor", "fused_add_tensor",
                              "slope_tensor", "output_tensor",         "output_gradient_tensor"};
// The operators other than activations.
const std::map<std::string, OperatorType> kOperators = {
    {"clip", OperatorType::element_wise_clip1},
    {"clip_grad", OperatorType::element_wise_clip_grad1},
    {"relu_grad", OperatorType::activation_relu_grad},
    {"parameterized_relu", OperatorType::activation_parameterized_relu},
    {"batch_normalization", OperatorType::batch_normalization},
    {"mean_variance_normalization", OperatorType::mean_variance_normalization2},
    {"batch_normalization_training", OperatorType::batch_normalization_training},
    {"batch_normalization_grad", OperatorType::batch_normalization_grad},
    {"batch_normalization_training_grad", OperatorType::batch_normalization_training_grad},
    {"log_softmax", OperatorType::activation_log_softmax1},
    {"softmax", OperatorType::activation_softmax1},
    {"hardmax", OperatorType::activation_hardmax1},
};
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

// Calls visit(zero), where zero is an unsigned integer of the type's size. Sanitizers make access
// to single bytes slow.
template <class Visit>
void with_bits_of(DataType type, const Visit& visit) {
  switch (element_size(type)) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

// A recipe of golden.py: name, seed, low, high.
struct Recipe {
  bool any, mixed;
  std::uint64_t seed = 0;
  std::int64_t low = 0, high = 1;

  explicit Recipe(const std::string& text) {
    const std::vector<std::string> parts = split(text, ':');
    any = parts.at(0) == "any";
    mixed = parts[0] == "mixed";
    seed = std::stoull(parts.at(1));
    if (parts.size() == 4) low = std::stoll(parts[2]), high = std::stoll(parts[3]);
  }

  // The bits of an element, of which Bits has the size.
  template <class Bits>
  Bits bits(std::uint64_t place, bool floating) const {
    const std::uint64_t hash = finalized(counter(place, seed));
    constexpr std::size_t width = 8 * sizeof(Bits);
    const std::uint64_t bits = hash >> (64 - width);
    if (any || !floating || (mixed && place % 2 == 0)) return static_cast<Bits>(bits);
    constexpr int mantissa = width == 32 ? 23 : 10;
    constexpr std::int64_t bias = width == 32 ? 127 : 15;
    const std::uint64_t pick = (hash & 0xffff) * static_cast<std::uint64_t>(high - low) >> 16;
    const std::uint64_t exponent = pick + static_cast<std::uint64_t>(low + bias);
    const std::uint64_t field = (std::uint64_t{1} << (width - 1)) - (std::uint64_t{1} << mantissa);
    return static_cast<Bits>((bits & ~field) | exponent << mantissa);
  }
};

GoldenTensor tensor(const Recipe& recipe, DataType type, const std::vector<std::int64_t>& sizes,
                    bool positive = false) {
  GoldenTensor result;
  result.type = type;
  result.sizes = sizes;
  std::size_t count = 1;
  for (const std::int64_t n : sizes) count *= static_cast<std::size_t>(n);
  result.bytes.resize(count * element_size(type));
  char* const bytes = result.bytes.data();
  const bool floating = is_floating_point(type);
  with_bits_of(type, [&](auto zero) {
    using Bits = decltype(zero);
    const Bits mask = std::numeric_limits<Bits>::max() >> (positive ? 1 : 0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<Bits>(recipe.bits<Bits>(i, floating) & mask);
      std::memcpy(bytes + i * sizeof bits, &bits, sizeof bits);
    }
  });
  return result;
}

BufferTensorDesc described(DataType type, const std::vector<std::int64_t>& sizes) {
  return {type, {sizes.begin(), sizes.end()}};
}

// The descriptor that fits the activation.
const OperatorInfo& activation_info(Activation activation) {
  for (const OperatorInfo& op : operators()) {
    if (op.family == Family::activation && op.activation == activation) return op;
  }
  throw std::runtime_error("an activation without a descriptor");
}

}  // namespace

const OperatorInfo& GoldenCase::info() const {
  const auto found = kOperators.find(operator_name);
  if (found != kOperators.end()) return known_operator(found->second);
  return activation_info(activation_type());
}

bool GoldenCase::lacks(const std::string& tensor) const {
  const auto found = parameters.find("without");
  if (found == parameters.end()) return false;
  const std::vector<std::string> names = split(found->second, '+');
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name + "_tensor" == tensor; });
}

std::vector<std::int64_t> GoldenCase::axes(const char* name) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return {};
  return integers(found->second, '+');
}

std::vector<std::int64_t> GoldenCase::sizes_of(const std::string& tensor) const {
  if (std::find(std::begin(kWhole), std::end(kWhole), tensor) != std::end(kWhole)) return sizes;
  std::vector<std::int64_t> result(sizes.size(), 1);
  for (const std::int64_t axis : axes(info().has(FieldKind::axes) ? "varying" : "axes")) {
    result[static_cast<std::size_t>(axis)] = sizes[static_cast<std::size_t>(axis)];
  }
  return result;
}

float GoldenCase::number(const char* name, float otherwise) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return otherwise;
  return static_cast<float>(std::strtod(found->second.c_str(), nullptr));
}

// Options that are true by default.
bool GoldenCase::flag(const char* name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() || found->second == "True";
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
    if (wanted == dmlops::info(candidate).name) return candidate;
  }
  throw std::runtime_error("no activation: " + wanted);
}

ActivationParameters GoldenCase::activation_parameters() const {
  const ActivationInfo& known = dmlops::info(activation_type());
  ActivationParameters result = known.defaults;
  if (known.parameter_count > 0) result.alpha = number(known.parameter_names[0], kNan);
  if (known.parameter_count > 1) result.beta = number(known.parameter_names[1], kNan);
  return result;
}

std::optional<FusedActivation> GoldenCase::fused_activation() const {
  if (parameters.count("fused") == 0) return std::nullopt;
  return FusedActivation(activation_type(), activation_parameters());
}

std::vector<GoldenTensor> GoldenCase::inputs() const {
  std::vector<GoldenTensor> result;
  Recipe next(recipe);
  for (int i = 0; i < info().inputs; ++i) {
    const std::string name = tensor_name(info(), i);
    if (lacks(name)) continue;
    result.push_back(tensor(next, type, sizes_of(name), name == "variance_tensor"));
    result.back().name = name;
    if (i == 0 && operator_name.find("normalization") != std::string::npos) {
      next = Recipe("bounded:0:-3:3");
      next.seed = Recipe(recipe).seed;
    }
    ++next.seed;
  }
  return result;
}

std::vector<GoldenTensor> GoldenCase::outputs() const {
  std::vector<GoldenTensor> result;
  for (int i = info().inputs; i < info().tensor_count(); ++i) {
    const std::string name = tensor_name(info(), i);
    GoldenTensor output = {name, type, sizes_of(name), {}};
    std::size_t size = element_size(type);
    for (const std::int64_t n : output.sizes) size *= static_cast<std::size_t>(n);
    output.bytes.assign(size, 0x77);
    result.push_back(std::move(output));
  }
  return result;
}

void GoldenCase::call(const std::vector<ConstTensorView>& in,
                      const std::vector<TensorView>& out) const {
  const std::vector<std::int64_t> reduced = axes();
  const float epsilon = number("epsilon", 1e-5f);
  if (operator_name == "clip") {
    std::optional<ScaleBias> scale_bias;
    if (parameters.count("scale") != 0) {
      scale_bias = ScaleBias{number("scale", kNan), number("scale_bias", kNan)};
    }
    clip(in[0], bound("min"), bound("max"), scale_bias, out[0]);
  } else if (operator_name == "clip_grad") {
    clip_grad(in[0], in[1], bound("min"), bound("max"), out[0]);
  } else if (operator_name == "relu_grad") {
    relu_grad(in[0], in[1], out[0]);
  } else if (operator_name == "parameterized_relu") {
    parameterized_relu(in[0], in[1], out[0]);
  } else if (operator_name == "log_softmax") {
    log_softmax(in[0], reduced.data(), reduced.size(), out[0]);
  } else if (operator_name == "softmax") {
    softmax(in[0], reduced.data(), reduced.size(), out[0]);
  } else if (operator_name == "hardmax") {
    hardmax(in[0], reduced.data(), reduced.size(), out[0]);
  } else if (operator_name == "batch_normalization") {
    batch_normalization({in[0], in[1], in[2], in[3], in[4]}, epsilon, fused_activation(), out[0]);
  } else if (operator_name == "mean_variance_normalization") {
    const auto* next = in.data() + 1;
    std::optional<ConstTensorView> scale, bias;
    if (!lacks("scale_tensor")) scale = *next++;
    if (!lacks("bias_tensor")) bias = *next++;
    mean_variance_normalization(
        in[0], scale, bias, reduced.data(), reduced.size(),
        {flag("use_mean"), flag("use_variance"), epsilon, fused_activation()}, out[0]);
  } else if (operator_name == "batch_normalization_training") {
    std::optional<ConstTensorView> fused_add;
    if (in.size() == 4) fused_add = in[3];
    batch_normalization_training({in[0], in[1], in[2], fused_add}, epsilon, fused_activation(),
                                 {out[0], out[1], out[2]});
  } else if (operator_name == "batch_normalization_grad") {
    batch_normalization_grad({in[0], in[1], in[2], in[3], in[4]}, epsilon,
                             {out[0], out[1], out[2]});
  } else if (operator_name == "batch_normalization_training_grad") {
    batch_normalization_training_grad({in[0], in[1], in[2], in[3], in[4]}, epsilon,
                                      {out[0], out[1], out[2]});
  } else {
    activation(activation_type(), in[0], activation_parameters(), out[0]);
  }
}

OperatorDesc GoldenCase::descriptor() const {
  const OperatorInfo& op = info();
  OperatorDesc desc;
  desc.type = op.type;
  for (int i = 0; i < op.tensor_count(); ++i) {
    const std::string name = tensor_name(op, i);
    if (!lacks(name)) desc.tensors[static_cast<std::size_t>(i)] = described(type, sizes_of(name));
  }
  desc.booleans = {flag("use_mean"), flag("use_variance")};
  for (const std::int64_t axis : axes()) desc.axes.push_back(static_cast<std::uint32_t>(axis));
  if (op.has(FieldKind::scalar)) {
    desc.min_max_data_type = type;
    desc.scalars = {scalar("min", -kInfinity), scalar("max", kInfinity)};
    if (parameters.count("scale") != 0) {
      desc.scale_bias = ScaleBias{number("scale", kNan), number("scale_bias", kNan)};
    }
  }
  if (op.family == Family::activation) {
    desc.numbers = {activation_parameters().alpha, activation_parameters().beta};
  } else {
    desc.numbers = {number("epsilon", 1e-5f), 0};
  }
  if (parameters.count("fused") != 0) {
    OperatorDesc fused;
    fused.type = activation_info(activation_type()).type;
    fused.numbers = {activation_parameters().alpha, activation_parameters().beta};
    desc.fused_activation = std::make_shared<const OperatorDesc>(fused);
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

std::uint64_t golden_digest(const std::vector<GoldenTensor>& tensors) {
  std::uint64_t sum = 0, place = 0;
  for (const GoldenTensor& tensor : tensors) {
    const char* const bytes = tensor.bytes.data();
    const std::size_t count = tensor.count();
    with_bits_of(tensor.type, [&, begin = place](auto bits) {
      std::uint64_t own = 0;
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
        own += finalized(counter(begin + i, 0) + bits);
      }
      sum += own;
    });
    place += count;
  }
  return sum;
}

}  // namespace dmlops
