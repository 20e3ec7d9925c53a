// The exceptions that the library throws for invalid arguments.
#pragma once

#include <stdexcept>

#include "dmlops/export.h"

namespace dmlops {

/// Base class of the exceptions for invalid arguments, also thrown itself for an invalid size,
/// value or environment variable. No output has been written when an exception is thrown.
class DMLOPS_API Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Thrown for a data type that an operator does not accept.
class DMLOPS_API TypeError : public Error {
 public:
  using Error::Error;
};

/// Thrown for a descriptor that breaks a rule. The message names the operator, the field, the rule,
/// both values, and the feature level that would accept the descriptor, if one does.
class DMLOPS_API ValidationError : public Error {
 public:
  using Error::Error;
};

/// Thrown for a binding that breaks a rule.
class DMLOPS_API BindingError : public Error {
 public:
  using Error::Error;
};

}  // namespace dmlops
