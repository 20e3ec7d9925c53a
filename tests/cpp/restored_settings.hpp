// Restores the thresholds, the number of threads and the instruction set at the end of a scope.
#pragma once

#include <cstdint>
#include <string>

#include "dmlops/runtime.hpp"
#include "traversal/policy.hpp"
#include "traversal/policy_setters.hpp"

namespace dmlops {

class RestoredSettings {
 public:
  RestoredSettings() = default;
  ~RestoredSettings() {
    set_isa(isa_);
    set_num_threads(threads_);
    set_split_threshold(split_threshold_);
    set_non_temporal_threshold(non_temporal_threshold_);
  }
  RestoredSettings(const RestoredSettings&) = delete;
  RestoredSettings& operator=(const RestoredSettings&) = delete;

 private:
  const std::string isa_ = isa();
  const int threads_ = get_num_threads();
  const std::int64_t split_threshold_ = split_threshold();
  const std::int64_t non_temporal_threshold_ = non_temporal_threshold();
};

}  // namespace dmlops
