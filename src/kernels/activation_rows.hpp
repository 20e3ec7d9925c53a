// The activations on rows. All layouts share one compiled copy of each long formula.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/tile.hpp"

namespace dmlops::DMLOPS_TARGET {

// A RunsFunction; `formula` is an Act.
template <class T, class In, class Act>
void activate_runs(const Runs<T, In>& given, const void* formula) {
  const Act act = *static_cast<const Act*>(formula);  // no part of it is read again after a store
  const Runs<T, In> runs = given;
  const char* next = runs.next != nullptr ? runs.next : runs.input;  // any address will do
  runs.for_each([&](T* output, const In* input) DMLOPS_LAMBDA_INLINE {
    stream<f32x, 1>(
        output, input, runs.length,
        [&act, next](f32x x, std::int64_t i) DMLOPS_LAMBDA_INLINE {
          __builtin_prefetch(next + i * std::int64_t{sizeof(T)}, 0, 2);
          return canonical_nan(act(x));
        },
        runs.non_temporal);
    next += runs.length * std::int64_t{sizeof(T)};
  });
}

// An activation on its own: the same functor that batch normalization fuses.
template <class T, class Act>
void activation(const Rows& rows, const void* parameters) {
  const Act act(*static_cast<const ActivationParameters*>(parameters));
  if constexpr (!kIsLong<Act>) {
    map_rows<T, f32x, 1>(rows,
                         [act](f32x x) DMLOPS_LAMBDA_INLINE { return canonical_nan(act(x)); });
  } else if (is_one_run<T>(rows)) {
    activate_runs<T, T, Act>(in_place<T>(rows), &act);
  } else {
    map_runs<T>(rows, &activate_runs<T, T, Act>, &act);
  }
}

}  // namespace dmlops::DMLOPS_TARGET
