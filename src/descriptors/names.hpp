// DirectML's names of structs and fields in messages.
#pragma once

#include <string>

#include "dmlops/error.hpp"

namespace dmlops {

// Translates a message from the names of Python and C++ to those of DirectML:
// "ActivationReluOperatorDesc: input_tensor is missing" becomes
// "DML_ACTIVATION_RELU_OPERATOR_DESC: InputTensor is missing".
std::string directml_names(const std::string& message);

// Calls the function; if `translated`, messages of its errors have DirectML's names.
template <class Function>
auto with_names(bool translated, const Function& function) {
  if (!translated) return function();
  try {
    return function();
  } catch (const ValidationError& error) {
    throw ValidationError(directml_names(error.what()));
  } catch (const BindingError& error) {
    throw BindingError(directml_names(error.what()));
  }
}

}  // namespace dmlops
