// Reads environment variables.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "core/text.hpp"
#include "dmlops/error.hpp"

namespace dmlops {

// Returns the integer in a variable, or none if the variable is unset or empty. Throws Error for
// other values, and for integers below `min` or above `max`.
inline std::optional<long long> whole_number_from(const char* variable, long long min,
                                                  long long max) {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 10);
  if (*end == '\0' && errno == 0 && number >= min && number <= max) return number;
  throw Error(
      concat(variable, "=", printable(text), " is not a whole number from ", min, " to ", max));
}

}  // namespace dmlops
