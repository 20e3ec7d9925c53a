// The message of the error by which a call is refused, or "accepted".
#pragma once

#include <string>

#include "dmlops/error.hpp"

namespace dmlops {

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
