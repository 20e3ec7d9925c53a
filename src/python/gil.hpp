// Releases the GIL during operators.
#pragma once

#include <cstdint>

#include <Python.h>

namespace dmlops::python {

// PyEval_RestoreThread that never returns after the interpreter has shut down.
void restore_thread(PyThreadState* state);

// Releases the GIL; given a number of elements, only if the work pays for the hand-over.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  explicit GilReleased(std::int64_t elements)
      : state_(elements >= kWorthwhile ? PyEval_SaveThread() : nullptr) {}
  ~GilReleased() {
    if (state_ != nullptr) restore_thread(state_);
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  static constexpr std::int64_t kWorthwhile = 16 * 1024;
  PyThreadState* const state_;
};

}  // namespace dmlops::python
