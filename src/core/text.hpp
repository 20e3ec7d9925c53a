// Text of messages.
#pragma once

#include <string>

namespace dmlops {

// Returns a number with its noun: "1 dimension", "2 dimensions".
template <class Integer>
std::string counted(Integer count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace dmlops
