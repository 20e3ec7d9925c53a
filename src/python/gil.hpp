// Lets other Python threads run while an operator does.
#pragma once

#include <cstdint>

#include <Python.h>

namespace dmlops::python {

// PyEval_RestoreThread that does not come back where the interpreter has shut down.
void restore_thread(PyThreadState* state);

// Releases the lock while there is work enough to make up for the hand-over.
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
