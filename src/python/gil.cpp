// What becomes of a thread that asks for the lock of an interpreter that has shut down.
//
// Up to Python 3.13 it is ended by pthread_exit, which unwinds its stack: destructors would touch
// Python's objects without the lock, and the unwinder, which is the system's, need not understand
// this module's frames. Later versions let the thread sleep for the rest of the process, as is done
// here. The build compiles this file without exceptions, so that the C library keeps the handler
// itself and runs it before it unwinds a frame of C++.
#include "gil.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#include <unistd.h>
#endif

namespace dmlops::python {

#if defined(_WIN32)
void restore_thread(PyThreadState* state) { PyEval_RestoreThread(state); }
#else
namespace {

void sleep_forever(void*) {
  for (;;) pause();
}

}  // namespace

#if defined(__EXCEPTIONS)
#error "this file is compiled without exceptions"
#endif

void restore_thread(PyThreadState* state) {
  pthread_cleanup_push(sleep_forever, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}
#endif

}  // namespace dmlops::python
