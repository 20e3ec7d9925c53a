// The exceptions that the library throws for invalid arguments.
#pragma once

#include <stdexcept>

#include "dmlops/export.h"

namespace dmlops {

/// Base class of the exceptions for invalid arguments. Thrown itself for a wrong size or value, and
/// for an invalid environment variable. No output has been written when it is thrown.
class DMLOPS_API Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A data type that an operator does not accept.
class DMLOPS_API TypeError : public Error {
 public:
  using Error::Error;
};

/// A descriptor that breaks a rule. The message names the operator, the field, the rule, both
/// values, and the feature level that would accept the descriptor, if one does.
class DMLOPS_API ValidationError : public Error {
 public:
  using Error::Error;
};

/// A binding that breaks a rule.
class DMLOPS_API BindingError : public Error {
 public:
  using Error::Error;
};

}  // namespace dmlops
