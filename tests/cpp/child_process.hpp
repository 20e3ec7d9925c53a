// Waits for a child process of a test; true if it exits with status 0.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace dmlops {

inline bool succeeds(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace dmlops
