// Releases the GIL during operators.
#pragma once

#include <cstdint>

#include <Python.h>

namespace dmlops::python {

// PyEval_RestoreThread that never returns after the interpreter has shut down.
void restore_thread(PyThreadState* state);

// Releases the GIL if there is enough work to pay for the hand-over.
class GilReleased {
 public:
  explicit GilReleased(std::int64_t elements) {
    if (elements >= kWorthwhile) state_ = PyEval_SaveThread();
  }
  ~GilReleased() {
    if (state_ != nullptr) restore_thread(state_);
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  static constexpr std::int64_t kWorthwhile = 16 * 1024;
  PyThreadState* state_ = nullptr;
};

}  // namespace dmlops::python
