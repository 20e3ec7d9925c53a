// The rules of DirectML's operators, each stated once for all operators and feature levels.
#include <algorithm>

#include "core/float_environment.hpp"
#include "core/text.hpp"
#include "descriptors/names.hpp"
#include "descriptors/table.hpp"
#include "descriptors/tensor.hpp"
#include "operators/check.hpp"
#include "operators/overlap.hpp"

namespace dmlops {
namespace {

// Validates a descriptor against its operator's row of the table and a feature level.
class Rules {
 public:
  Rules(const OperatorDesc& desc, const OperatorInfo& op, FeatureLevel level)
      : desc_(desc), op_(op), level_(level) {}

  void check() const {
    const FloatEnvironment environment;
    for (int i = 0; i < op_.tensor_count(); ++i) check_one_tensor(i);
    check_level();
    for (int i = 1; i < op_.tensor_count(); ++i) check_match(i);
    for (int i = op_.inputs; i < op_.tensor_count(); ++i) check_output(i);
    for (const Field& field : op_) {
      if (field.kind == FieldKind::data_type) check_min_max_type();
      if (field.kind == FieldKind::axes) check_axes(field);
      if (field.kind == FieldKind::activation) check_fused_activation();
    }
    if (op_.family == Family::batch_normalization) check_spatial();
    if (op_.family == Family::mean_variance_normalization) check_scale_and_bias();
    check_steepness(desc_, op_, std::string());
    check_effective_rank();
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ValidationError(concat(op_.name, ": ", what));
  }
  const BufferTensorDesc& tensor(int i) const {
    return *desc_.tensors[static_cast<std::size_t>(i)];
  }
  bool has_tensor(int i) const { return desc_.tensors[static_cast<std::size_t>(i)].has_value(); }
  const BufferTensorDesc& input() const { return tensor(0); }
  const BufferTensorDesc& output() const { return tensor(op_.inputs); }
  std::string name_of(int i) const { return tensor_name(op_, i); }
  std::string at_level() const { return concat(" at ", name(level_)); }

  void check_one_tensor(int i) const {
    if (!has_tensor(i)) {
      if (op_.fields[i].optional) return;
      refuse(concat(
          name_of(i), " is missing; ",
          op_.is_fusable ? "only a fused activation has no tensors" : "the operator requires it"));
    }
    check_tensor(tensor(i), concat(op_.name, ": ", name_of(i)));
  }

  // Checks data type and rank of the input, which the other tensors must share.
  void check_level() const {
    const std::uint32_t rank = input().dimension_count;
    TypeSet types = 0;
    std::uint32_t min_rank = kMaxRank, max_rank = 0;  // with this type
    for (const Support& support : op_.supports) {
      if (support.since > level_ || support.types == 0) continue;
      types |= support.types;
      if (!contains(support.types, input().data_type)) continue;
      if (support.min_rank <= rank && rank <= support.max_rank) return;
      min_rank = std::min(min_rank, support.min_rank);
      max_rank = std::max(max_rank, support.max_rank);
    }
    if (max_rank == 0) {
      refuse(concat("input_tensor has data type ", upper_name(input().data_type),
                    "; it must be one of ", types_text(types), at_level()));
    }
    refuse(concat("input_tensor has ", counted(rank, "dimension"), "; it must have ", min_rank,
                  min_rank == max_rank ? "" : concat(" to ", max_rank), at_level()));
  }

  void check_match(int i) const {
    if (!has_tensor(i)) return;
    const BufferTensorDesc& other = tensor(i);
    if (other.data_type != input().data_type) {
      refuse(concat(name_of(i), " has data type ", upper_name(other.data_type),
                    ", but input_tensor has ", upper_name(input().data_type),
                    "; they must be the same"));
    }
    if (other.dimension_count != input().dimension_count) {
      refuse(concat(name_of(i), " has ", counted(other.dimension_count, "dimension"),
                    ", but input_tensor has ", input().dimension_count, "; they must be the same",
                    channels_advice(i)));
    }
    const bool broadcasts = op_.fields[i].kind == FieldKind::parameter;
    const int like = op_.fields[i].like;
    const BufferTensorDesc& model = tensor(like);
    for (std::size_t d = 0; d < input().dimension_count; ++d) {
      if (other.sizes[d] == model.sizes[d] || (broadcasts && other.sizes[d] == 1)) continue;
      refuse(
          concat(name_of(i), " has sizes ", sizes_text(other), ", but ", name_of(like), " has ",
                 sizes_text(model), "; in dimension ", d, " its size must be ",
                 broadcasts ? "1 or " : "", model.sizes[d], ", not ", other.sizes[d],
                 i < op_.inputs && other.sizes[d] == 1 ? "; a stride of 0 repeats elements" : ""));
    }
  }

  // Returns the sizes of a parameter that is a vector with an element for each channel.
  std::string channels_advice(int i) const {
    const BufferTensorDesc& vector = tensor(i);
    const bool is_vector =
        op_.fields[i].kind == FieldKind::parameter && vector.dimension_count == 1;
    if (!is_vector || input().dimension_count < 2 || vector.sizes[0] != input().sizes[1]) return "";
    BufferTensorDesc channels = input();
    for (std::size_t d = 0; d < channels.dimension_count; ++d)
      if (d != 1) channels.sizes[d] = 1;
    return concat("; for one value per channel, use sizes ", sizes_text(channels));
  }

  void check_output(int i) const {
    const BufferTensorDesc& written = tensor(i);
    if (written.flags != TensorFlags::none) {
      refuse(concat(name_of(i), " has the flag OWNED_BY_DML, which only inputs may have"));
    }
    if (overlaps_itself(view_of(written))) {
      const std::string strides =
          joined(written.dimension_count, [&](std::size_t d) { return (*written.strides)[d]; });
      refuse(concat(name_of(i), " has strides (", strides, ") with sizes ", sizes_text(written),
                    ", which make elements overlap one another"));
    }
  }

  void check_min_max_type() const {
    if (desc_.min_max_data_type == output().data_type) return;
    refuse(concat("min_max_data_type is ", upper_name(desc_.min_max_data_type), ", but ",
                  name_of(op_.inputs), " has data type ", upper_name(output().data_type),
                  "; they must be the same"));
  }

  // `of` is "fused_activation ActivationSoftplusOperatorDesc: " for a fused activation.
  void check_steepness(const OperatorDesc& desc, const OperatorInfo& op,
                       const std::string& of) const {
    if (op.type != OperatorType::activation_softplus || level_ >= FeatureLevel::level_6_4) return;
    if (desc.numbers[0] >= 1.0f) return;
    refuse(concat(of, "steepness is ", number_text(static_cast<double>(desc.numbers[0])),
                  "; it must be at least 1", at_level()));
  }

  // Height and width are the dimensions after batch and channel.
  void check_spatial() const {
    if (desc_.booleans[0] || level_ >= FeatureLevel::level_4_0) return;
    const std::size_t rank = input().dimension_count;
    for (int i = 1; i <= 2; ++i) {  // mean and variance
      for (std::size_t d = std::max<std::size_t>(2, rank < 2 ? 0 : rank - 2); d < rank; ++d) {
        const bool repeated = is_broadcast(tensor(i), d);
        if (tensor(i).sizes[d] == input().sizes[d] && !repeated) continue;
        refuse(
            concat(name_of(i), " is broadcast in dimension ", d,
                   repeated ? ", by a stride of 0" : concat(", from size 1 to ", input().sizes[d]),
                   ", which spatial=False does not allow", at_level()));
      }
    }
  }

  // Mean-variance normalization: below 5.2 both or none; below 4.0 not broadcast over the channels.
  void check_scale_and_bias() const {
    if (level_ < FeatureLevel::level_5_2 && has_tensor(1) != has_tensor(2)) {
      refuse(concat(name_of(has_tensor(1) ? 2 : 1), " is missing, but ",
                    name_of(has_tensor(1) ? 1 : 2), " is given; both or none must be", at_level()));
    }
    if (op_.type != OperatorType::mean_variance_normalization1 ||
        level_ >= FeatureLevel::level_4_0 || input().dimension_count < 2) {
      return;
    }
    for (int i = 1; i <= 2; ++i) {
      if (!has_tensor(i) || tensor(i).sizes[1] == input().sizes[1]) continue;
      refuse(concat(name_of(i), " has size ", tensor(i).sizes[1],
                    " in dimension 1, the channels; it must be ", input().sizes[1], at_level()));
    }
  }

  void check_fused_activation() const {
    if (desc_.fused_activation == nullptr) return;
    const OperatorDesc& fused = *desc_.fused_activation;
    const OperatorInfo* const op = find_operator(fused.type);
    if (op == nullptr || !op->is_fusable) {
      refuse(concat("fused_activation is ",
                    op == nullptr ? concat("operator type ", static_cast<std::uint32_t>(fused.type))
                                  : op->name,
                    ", which cannot be fused; it must be one of ", fusable_names()));
    }
    const std::string who = concat("fused_activation ", op->name);
    for (int i = 0; i < op->tensor_count(); ++i) {
      if (!fused.tensors[static_cast<std::size_t>(i)].has_value()) continue;
      refuse(
          concat(who, " has ", tensor_name(*op, i), "; a fused activation must have no tensors"));
    }
    if (op->since() > level_) {
      refuse(concat(who, " needs ", name(op->since()), "; the device has ", number(level_)));
    }
    check_steepness(fused, *op, concat(who, ": "));
  }

  void check_effective_rank() const {
    if (op_.any_rank == nullptr) return;
    std::uint32_t leading = 0;
    while (leading < input().dimension_count && input().sizes[leading] == 1) ++leading;
    const std::uint32_t effective = input().dimension_count - leading;
    if (effective <= 2) return;
    refuse(concat("input_tensor has sizes ", sizes_text(input()), ", an effective rank of ",
                  effective, "; without leading sizes of 1 at most 2 dimensions are allowed (",
                  op_.any_rank, " takes any)"));
  }

  void check_axes(const Field& field) const {
    if (desc_.axes.empty() && !field.optional) refuse("axes is empty; at least one axis is needed");
    unsigned int seen = 0;
    for (const std::uint32_t axis : desc_.axes) {
      if (axis >= input().dimension_count) {
        refuse(concat("axes has ", axis, ", which is out of range for an input_tensor with ",
                      counted(input().dimension_count, "dimension"), " (0 to ",
                      input().dimension_count - 1, ")"));
      }
      if ((seen >> axis & 1u) != 0) refuse(concat("axes has ", axis, " twice"));
      seen |= 1u << axis;
    }
  }

  const OperatorDesc& desc_;
  const OperatorInfo& op_;
  FeatureLevel level_;
};

constexpr FeatureLevel kHighestLevel = FeatureLevel::level_6_4;

bool accepts(const OperatorDesc& desc, const OperatorInfo& op, FeatureLevel level) {
  try {
    Rules(desc, op, level).check();
    return true;
  } catch (const ValidationError&) {
    return false;
  }
}

// Returns the lowest level from `from` on that accepts a descriptor. Levels are cumulative, so a
// descriptor that the highest one refuses needs no further search.
std::optional<FeatureLevel> accepting_level(const OperatorDesc& desc, const OperatorInfo& op,
                                            FeatureLevel from) {
  if (!accepts(desc, op, kHighestLevel)) return std::nullopt;
  for (const FeatureLevel level : kFeatureLevels) {
    if (level >= from && level >= op.since() && accepts(desc, op, level)) return level;
  }
  return std::nullopt;
}

void validate_at(const OperatorDesc& desc, FeatureLevel level) {
  const OperatorInfo& op = known_operator(desc.type);
  if (level < op.since()) {
    const FeatureLevel needed = accepting_level(desc, op, op.since()).value_or(op.since());
    throw ValidationError(
        concat(op.name, " needs ", name(needed), "; the device has ", number(level)));
  }
  try {
    Rules(desc, op, level).check();
  } catch (const ValidationError& error) {
    if (level == kHighestLevel) throw;
    const std::optional<FeatureLevel> accepting = accepting_level(desc, op, level);
    if (!accepting.has_value()) throw;
    const std::string what = error.what(), accepts = name(*accepting);
    if (what.find(accepts) != std::string::npos) throw;  // "needs" that level
    throw ValidationError(concat(what, "; ", accepts, " accepts it"));
  }
}

}  // namespace

void validate(const OperatorDesc& desc, FeatureLevel level) {
  with_names(desc.directml_names, [&] { validate_at(desc, level); });
}

FeatureLevel required_feature_level(const OperatorDesc& desc) {
  const OperatorInfo& op = known_operator(desc.type);
  const std::optional<FeatureLevel> accepting = accepting_level(desc, op, FeatureLevel::level_1_0);
  if (!accepting.has_value()) validate(desc, kHighestLevel);  // throws with the reason
  return *accepting;
}

}  // namespace dmlops
