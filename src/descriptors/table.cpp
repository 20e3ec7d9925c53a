// Looks up operators, and names levels and data types.
#include "descriptors/table.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "core/text.hpp"
#include "descriptors/rows.hpp"

namespace dmlops {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

const FeatureLevel kFeatureLevels[kFeatureLevelCount] = {
    Level::level_1_0, Level::level_2_0, Level::level_2_1, Level::level_3_0, Level::level_3_1,
    Level::level_4_0, Level::level_4_1, Level::level_5_0, Level::level_5_1, Level::level_5_2,
    Level::level_6_0, Level::level_6_1, Level::level_6_2, Level::level_6_3, Level::level_6_4,
};

OperatorInfos operators() { return {std::begin(kOperators), std::end(kOperators)}; }

const OperatorInfo* find_operator(OperatorType type) {
  const auto* const found =
      std::find_if(std::begin(kOperators), std::end(kOperators),
                   [type](const OperatorInfo& candidate) { return candidate.type == type; });
  return found == std::end(kOperators) ? nullptr : found;
}

const OperatorInfo& known_operator(OperatorType type) {
  const OperatorInfo* const op = find_operator(type);
  if (op != nullptr) return *op;
  throw ValidationError(concat("operator type ", static_cast<std::uint32_t>(type),
                               " is not among the operators of dmlops"));
}

bool boolean_of(const OperatorDesc& desc, const char* name, bool absent) {
  const bool* next = desc.booleans.data();
  for (const Field& field : *find_operator(desc.type)) {
    if (field.kind != FieldKind::boolean) continue;
    if (std::strcmp(field.name, name) == 0) return *next;
    ++next;
  }
  return absent;
}

std::string number(FeatureLevel level) {
  const auto value = static_cast<std::uint32_t>(level);
  return concat(value >> 12, "_", value >> 8 & 15);
}

std::string name(FeatureLevel level) { return concat("DML_FEATURE_LEVEL_", number(level)); }

std::string upper_name(DataType type) {
  const auto value = static_cast<std::uint32_t>(type);
  return value < kDataTypeCount ? upper(name(type)) : std::to_string(value);
}

std::string types_text(TypeSet types) {
  std::string text;
  for (std::uint32_t i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (contains(types, type)) text += concat(text.empty() ? "" : ", ", upper_name(type));
  }
  return text;
}

}  // namespace dmlops
