// DirectML's operators, from its documentation: names, fields, data types and ranks per feature
// level.
#pragma once

#include <string>

#include "descriptors/family.hpp"
#include "dmlops/descriptors.hpp"
#include "operators/type_sets.hpp"

namespace dmlops {

// Ranks and data types that a feature level adds.
struct Support {
  FeatureLevel since;
  std::uint32_t min_rank, max_rank;
  TypeSet types;
};

// The kind of a struct's field. OperatorDesc has the n-th tensor of a struct in tensors[n], the
// n-th number in numbers[n], the n-th scalar in scalars[n]. Tensors come first.
enum class FieldKind {
  tensor,     // of the input's data type, and of the sizes of `like`
  parameter,  // each size is 1 or that of `like`
  output,     // as `tensor`; outputs are the last tensors
  number,
  scalar,
  data_type,  // of the scalars; that of the tensors
  scale_bias,
  boolean,
  axes,  // two members: AxisCount and Axes
  activation,
};
struct Field {
  const char* name;
  FieldKind kind;
  std::size_t offset;     // in DirectML's struct
  bool optional = false;  // of a tensor: may be absent; of axes: may be empty
  int like = 0;           // the index of a tensor
};

struct OperatorInfo {
  static constexpr int kMaxSupports = 4;

  OperatorType type;
  const char* name;  // the descriptor's name: "ElementWiseClipOperatorDesc"
  Family family;
  bool in_place;
  Support supports[kMaxSupports];  // oldest first; unused ones have no types
  const Field* fields;             // in the order of the struct
  int field_count;
  int inputs, outputs;
  Activation activation;  // of Family::activation
  bool is_fusable;
  const char* any_rank;  // operator to advise where this one limits the effective rank to 2

  FeatureLevel since() const { return supports[0].since; }
  int tensor_count() const { return inputs + outputs; }
  bool has(FieldKind kind) const {
    for (const Field& field : *this) {
      if (field.kind == kind) return true;
    }
    return false;
  }
  const Field* begin() const { return fields; }
  const Field* end() const { return fields + field_count; }
};

// A range of the rows of all operators.
struct OperatorInfos {
  const OperatorInfo *first, *last;
  const OperatorInfo* begin() const { return first; }
  const OperatorInfo* end() const { return last; }
};
OperatorInfos operators();

// Returns null if dmlops lacks the operator.
const OperatorInfo* find_operator(OperatorType type);
// Returns the row of an operator; throws ValidationError if dmlops lacks it.
const OperatorInfo& known_operator(OperatorType type);

// Returns a BOOL of a descriptor, or `absent` if the struct lacks the field.
bool boolean_of(const OperatorDesc& desc, const char* name, bool absent);

// "mean_tensor"; outputs come last.
inline const char* tensor_name(const OperatorInfo& op, int index) { return op.fields[index].name; }

constexpr std::size_t kFeatureLevelCount = 15;
extern const FeatureLevel kFeatureLevels[kFeatureLevelCount];  // lowest first
std::string name(FeatureLevel level);                          // "DML_FEATURE_LEVEL_5_1"
std::string number(FeatureLevel level);                        // "5_1"

std::string upper_name(DataType type);  // "FLOAT32"
std::string types_text(TypeSet types);  // "FLOAT32, FLOAT16"

}  // namespace dmlops
