// log_softmax of groups: the steps that rows and columns share.
#pragma once

#include "kernels/softmax/log_softmax_log_sum_exp.hpp"

namespace dmlops::DMLOPS_TARGET {

// The group size from which the plain sum is tried first. In shorter float16 groups it often fails,
// so these begin with the maxima.
template <class T>
constexpr std::int64_t kPlainFirst = std::is_same_v<T, float> ? 0 : 128;

// A batch of groups and its log-sum-exp. `Passes`, the derived class, implements the passes over
// memory, along rows or down columns.
template <class Passes, class T, int kCapacity>
class GroupBatch {
 protected:
  void run(std::int64_t count) {
    Passes& passes = static_cast<Passes&>(*this);
    log_sum_exp_.clear_past(count);
    bool enough = false;
    if (kPlainFirst<T> == 0 || passes.elements() >= kPlainFirst<T>) {
      passes.add_plain();
      enough = log_sum_exp_.take_plain(count);
    } else {
      passes.find_maxima();
      log_sum_exp_.take_nothing(count);
    }
    if (!enough) {
      passes.add_excluding_max();
      log_sum_exp_.take_excluding_max(count);
    }
    log_sum_exp_.compute(count);
    passes.finish();
  }

  LogSumExp<T, kCapacity> log_sum_exp_;
};

}  // namespace dmlops::DMLOPS_TARGET
