// Lets other Python threads run while an operator does.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include <Python.h>

namespace dmlops::python {

// Releases the lock while there is work enough to make up for the hand-over.
class GilReleased {
 public:
  explicit GilReleased(std::int64_t elements) {
    if (elements >= kWorthwhile) state_ = PyEval_SaveThread();
  }
  ~GilReleased() {
    if (state_ == nullptr) return;
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      // The interpreter has shut down, and up to Python 3.13 it ends this thread by unwinding it.
      // Later ones let it sleep for the rest of the process, as is done here.
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  static constexpr std::int64_t kWorthwhile = 16 * 1024;
  PyThreadState* state_ = nullptr;
};

}  // namespace dmlops::python
