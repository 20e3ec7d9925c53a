// Reads environment variables.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

#include "dmlops/error.hpp"

namespace dmlops {

// Returns the integer in a variable, or none if the variable is unset or empty. Throws Error for
// other values.
inline std::optional<long long> whole_number_from(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 10);
  if (*end != '\0' || errno != 0)
    throw Error(std::string(variable) + "=" + text + " is not a whole number");
  return number;
}

}  // namespace dmlops
