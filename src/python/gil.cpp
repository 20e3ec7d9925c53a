// Stops threads that request the GIL of an interpreter that has shut down.
//
// Up to version 3.13, Python ends such a thread by pthread_exit, which unwinds its stack:
// destructors would access Python objects without the GIL, and the system's unwinder may not
// understand this module's frames. Later versions suspend the thread until the process ends, as
// this file does. It is compiled without exceptions, so that the C library runs the cleanup handler
// before it unwinds a C++ frame.
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
