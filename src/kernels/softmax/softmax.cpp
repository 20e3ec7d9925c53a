// The kernels of softmax, exp(x - max) / sum(exp(x - max)) over each group, and of hardmax, along
// rows or down columns as the layout requires.
//
// The error of a float32 result is at most 1.95 ulp, of the exact result rounded to float32. In
// units of 2^-24, relative to the exact result: 0.18 of its term, 1.18 of the sum of the terms,
// each rounded to float32 (1), and 0.09 of the roundings within SoftmaxTerm::times(); such a unit
// is at most an ulp. The last operation adds 0.5 ulp. No result exceeds 1. If the sum excluding the
// maximum vanishes in the rounded sum, the maximum's result is 1, an error of at most an ulp
// (SoftmaxTerm::quotient()). A subnormal result is rounded a second time, but the other errors are
// at most half as many of its ulp. float16 results: 0.02 ulp, for 2 * 2.7e-6 of the terms and
// 67 * 2^-24 of the float32 sums, beyond their rounding.
#include "kernels/softmax/hardmax.hpp"
#include "kernels/softmax/softmax_chunks.hpp"
#include "kernels/softmax/softmax_columns.hpp"
#include "kernels/softmax/softmax_part.hpp"
#include "kernels/softmax/softmax_rows.hpp"
#include "kernels/table.hpp"

namespace dmlops::DMLOPS_TARGET {
namespace {

template <class T>
void softmax(const Reduction& groups, const void*) {
  if (groups.parts > 1) return softmax_in_parts<T>(groups);
  if (fills_rows(groups, kSoftmaxAlongRows)) {
    SoftmaxRows<T>(groups).run();
  } else {
    SoftmaxColumns<T>(groups).run();
  }
}

template <class T>
void hardmax(const Reduction& groups, const void*) {
  if (groups.parts > 1) return hardmax_in_parts<T>(groups);
  if (fills_rows(groups, kHardmaxAlongRows)) {
    HardmaxRows<T>(groups).run();
  } else {
    HardmaxColumns<T>(groups).run();
  }
}

}  // namespace

void set_softmax(KernelTable& table) {
  table.softmax[0] = &softmax<float>;
  table.softmax[1] = &softmax<float16>;
  table.softmax_sums[0] = &softmax_sums<float>;
  table.softmax_sums[1] = &softmax_sums<float16>;
  table.softmax_finish[0] = &softmax_finish<float>;
  table.softmax_finish[1] = &softmax_finish<float16>;
  table.hardmax[0] = &hardmax<float>;
  table.hardmax[1] = &hardmax<float16>;
}

}  // namespace dmlops::DMLOPS_TARGET
