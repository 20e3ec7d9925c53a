// The message by which a call is refused.
#pragma once

#include <string>

#include "dmlops/error.hpp"

namespace dmlops {

// Returns the message of the error that a call throws, or "accepted".
template <class Refusal = Error, class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Refusal& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace dmlops
