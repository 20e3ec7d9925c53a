// A program without exceptions and RTTI may include the headers.
#include <dmlops/directml.h>
#include <dmlops/dmlops.h>
#include <dmlops/dmlops.hpp>
#include <vector>

void normalize(std::vector<float>& x, const std::vector<int>& axes);
void normalize(std::vector<float>& x, const std::vector<int>& axes) {
  dmlops::log_softmax(x, axes, x);
}
