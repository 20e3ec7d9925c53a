// The thresholds that a test sets.
#pragma once

#include <cstdint>

#include "traversal/policy.hpp"
#include "traversal/policy_setters.hpp"

namespace dmlops {

// Restores the thresholds at the end of its scope.
class Thresholds {
 public:
  Thresholds() = default;
  ~Thresholds() {
    set_non_temporal_threshold(non_temporal_);
    set_split_threshold(split_);
  }
  Thresholds(const Thresholds&) = delete;
  Thresholds& operator=(const Thresholds&) = delete;

 private:
  std::int64_t non_temporal_ = non_temporal_threshold(), split_ = split_threshold();
};

}  // namespace dmlops
