// Looks activations up in their tables, and refuses those that are unknown or cannot be fused.
#include <string>

#include "core/attributes.hpp"
#include "core/text.hpp"
#include "dmlops/activation.hpp"
#include "operators/activation_infos.hpp"
#include "operators/check.hpp"

namespace dmlops {

DMLOPS_COLD void refuse_unknown(const char* where, Activation type) {
  const auto number = static_cast<std::uint32_t>(type);
  throw Error(concat(where, "type is ", number, "; it must be one of the ", kActivationCount,
                     " activations, 0 to ", kActivationCount - 1));
}

std::string fusable_names() {
  return joined(kFusableActivationCount, [](std::size_t i) { return kActivationInfos[i].name; });
}

void require_fusable(const char* op, const std::optional<FusedActivation>& activation) {
  if (!activation) return;
  const Activation type = activation->type;
  const std::string where = concat(op, ": fused_activation.");
  require_known(where.c_str(), type);
  if (static_cast<std::uint32_t>(type) < kFusableActivationCount) return;
  throw Error(concat(where, "type is ", info(type).name,
                     ", which cannot be fused; it must be one of ", fusable_names()));
}

const ActivationInfo& info(Activation type) {
  require_known("info: ", type);
  return kActivationInfos[static_cast<std::size_t>(type)];
}

const AcceptedTypes& accepted_types(Activation type) {
  return *kActivationTypes[static_cast<std::size_t>(type)];
}

}  // namespace dmlops
